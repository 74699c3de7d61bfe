"""The profiler: what is recorded, how it is summed, tables and traces, and the picture of a graph with it."""

import gzip
import json
import os
import threading

import pytest

import rushlight as torch
from rushlight.autograd.graph import draw
from rushlight.autograd.profiler import profile, record_function
from rushlight.profiler import ProfilerAction, schedule, tensorboard_trace_handler
from rushlight.profiler import profile as stepwise


def named(events, name):
    return [event for event in events if event.name == name]


def one(events, name):
    (event,) = named(events, name)
    return event


def problem():
    return torch.randn(8, 4, requires_grad=True), torch.randn(4, 3, requires_grad=True)


def test_operators_nodes_and_ranges():
    x, w = problem()
    with profile(record_shapes=True, with_stack=True) as prof:
        with record_function("mine"):
            y = (x @ w).relu().sum()
        y.backward()
    events = prof.function_events
    mine, product = one(events, "mine"), one(events, "aten::matmul")
    assert [event.kind for event in (mine, product, one(events, "MmBackward0"))] == ["range", "operator", "node"]
    assert mine.cpu_children == [product, one(events, "aten::relu"), one(events, "aten::sum")]
    assert product.cpu_parent is mine
    assert product.input_shapes == [[8, 4], [4, 3]]
    assert any(
        line.startswith(f"{__file__}(") and line.endswith(f": {test_operators_nodes_and_ranges.__name__}")
        for line in product.stack
    )
    assert product.sequence_nr == one(events, "MmBackward0").sequence_nr >= 0
    assert 0 <= mine.time_range.start <= product.time_range.start <= product.time_range.end <= mine.time_range.end
    assert mine.self_cpu_time_total == pytest.approx(
        mine.cpu_time_total - sum(child.cpu_time_total for child in mine.cpu_children)
    )
    assert len(named(events, "torch::autograd::AccumulateGrad")) == 2
    assert "0x" not in repr(product)


def test_every_form_of_call_is_recorded_under_its_name():
    x = torch.rand(3) + 1
    parameter = torch.nn.Parameter(torch.rand(3))
    with profile() as prof:
        2 - x
        1 / x
        x**2
        x += 1
        x.mul_(2)
        torch.add(x, 1, out=torch.empty(3))
        _ = x > 1
        x[1:]
        x[0] = 5.0
        _ = -x
        parameter * 2
        torch.nn.functional.gelu(x)
    names = {event.name for event in prof.function_events}
    expected = "sub div pow add_ mul_ add gt __getitem__ __setitem__ neg mul gelu"
    assert {f"aten::{name}" for name in expected.split()} <= names


def test_steps_of_optimizers_are_ranges():
    parameter = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    with profile() as prof:
        optimizer.step(lambda: (parameter * 2).sum())
    step = one(prof.function_events, "Optimizer.step#SGD.step")
    assert [child.name for child in step.cpu_children] == ["aten::mul", "aten::sum"]
    assert not torch.optim.optimizer._global_pre_hooks
    assert not torch.optim.optimizer._global_post_hooks


def test_nothing_is_recorded_outside():
    x, w = problem()
    plain = type(x).__matmul__, torch.exp
    with profile() as prof:
        torch.exp(x)
    with profile(enabled=False) as off:
        torch.exp(x)
    with record_function("unseen"):
        (x @ w).sum().backward()
    assert [event.name for event in prof.function_events] == ["aten::exp"]
    assert (type(x).__matmul__, torch.exp) == plain
    assert off.function_events is None
    assert not torch._C._profiler_enabled()


def test_recording_ends_with_an_exception():
    with pytest.raises(LookupError), profile() as prof, record_function("open"):
        torch.ones(1).exp()
        raise LookupError
    assert [event.name for event in prof.function_events] == ["open", "aten::ones", "aten::exp"]
    with pytest.raises(TypeError), profile() as prof:
        torch.exp("nothing")
    assert len(prof.function_events) == 1


def test_failed_calls_close_their_events():
    with profile() as prof:
        with pytest.raises(RuntimeError):
            torch.ones(2) @ torch.ones(3)
        torch.ones(1)
    assert all(event.cpu_parent is None for event in prof.function_events)


def test_memory():
    x = torch.ones(1000)
    with profile(profile_memory=True) as prof:
        with record_function("kept"):
            y = x.exp()
        with record_function("dropped"):
            x.exp()
        del y
    kept, dropped = one(prof.function_events, "kept"), one(prof.function_events, "dropped")
    assert kept.cpu_memory_usage >= 4000
    assert kept.self_cpu_memory_usage == 0
    assert dropped.cpu_memory_usage == 0
    assert dropped.self_cpu_memory_usage == -dropped.cpu_children[0].cpu_memory_usage <= -4000
    assert "Self CPU Mem" in prof.table()
    assert "KB" in prof.table()


def test_deferred_work_shows_where_it_is_done():
    x = torch.ones(1 << 17)
    with profile() as prof:
        y = x.exp() * 2
        y.sum()
    work = one(prof.function_events, "rushlight::fused_pass")
    assert work.kind == "pass"
    assert work.cpu_parent is one(prof.function_events, "aten::sum")


def test_threads_have_their_own_nesting():
    def work():
        with record_function("other"):
            torch.ones(2).exp()

    with profile() as prof, record_function("main"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        torch.ones(2).sin()
    other, main = one(prof.function_events, "other"), one(prof.function_events, "main")
    assert other.cpu_parent is None
    assert other.thread != main.thread
    assert "aten::exp" in [child.name for child in other.cpu_children]
    assert "aten::exp" not in [child.name for child in main.cpu_children]


def test_averages():
    x, w = problem()
    with profile(record_shapes=True) as prof:
        x.exp()
        w.exp()
        x.exp()
    (average,) = prof.key_averages()
    assert (average.key, average.count) == ("aten::exp", 3)
    assert average.cpu_time_total == pytest.approx(sum(event.cpu_time_total for event in prof.function_events))
    assert average.cpu_time == pytest.approx(average.cpu_time_total / 3)
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert sorted((str(a.input_shapes), a.count) for a in by_shape) == [("[[4, 3]]", 1), ("[[8, 4]]", 2)]
    assert prof.total_average().count == 3
    assert prof.self_cpu_time_total == pytest.approx(average.self_cpu_time_total)


def test_table():
    x, w = problem()
    with profile() as prof:
        for _ in range(3):
            x.exp()
        x @ w
    lines = prof.key_averages().table(sort_by="count", row_limit=1, header="mine", time_unit="ms").splitlines()
    assert lines[1] == "mine"
    titles = [title.strip() for title in lines[3].split("  ") if title.strip()]
    assert (titles[0], titles[-1]) == ("Name", "# of Calls")
    assert [line.split()[0] for line in lines if line.strip().startswith("aten::")] == ["aten::exp"]
    assert lines[5].split()[-1] == "3"
    assert lines[-1].startswith("Self CPU time total: ")
    assert lines[-1].endswith("ms")
    with pytest.raises(AttributeError, match="bogus"):
        prof.key_averages().table(sort_by="bogus")


def test_floating_point_operations():
    functional = torch.nn.functional
    with profile(with_flops=True) as prof:
        torch.ones(3, 4) @ torch.ones(4, 5)
        functional.conv2d(torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3))
        functional.linear(torch.ones(7, 4), torch.ones(2, 4))
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
        torch.addmm(torch.ones(5), torch.ones(3, 4), torch.ones(4, 5))
        torch.ones(2, 3) * torch.ones(3)
        torch.ones(2, 3).exp()
    counts = {average.key: average.flops for average in prof.key_averages()}
    expected = {"matmul": 120, "conv2d": 972, "linear": 112, "bmm": 240, "addmm": 120, "mul": 6, "exp": 0}
    assert {name: counts[f"aten::{name}"] for name in expected} == expected
    assert "Total FLOPs" in prof.table()
    assert "Total FLOPs" not in profile_of_nothing().table()


def profile_of_nothing():
    with profile() as prof:
        torch.ones(1)
    return prof


def test_chrome_trace(tmp_path):
    x, w = problem()
    with profile(record_shapes=True) as prof, record_function("mine"):
        (x @ w).sum().backward()
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    events = {event["name"]: event for event in trace["traceEvents"] if event["ph"] == "X"}
    assert events["mine"]["cat"] == "user_annotation"
    product = events["aten::matmul"]
    assert product["args"]["Input Dims"] == [[8, 4], [4, 3]]
    assert product["pid"] == os.getpid()
    assert events["mine"]["ts"] <= product["ts"]
    assert product["ts"] + product["dur"] <= events["mine"]["ts"] + events["mine"]["dur"] + 1e-3
    assert product["args"]["Sequence number"] == events["MmBackward0"]["args"]["Sequence number"]


def test_record_function_as_decorator_and_wrong_use():
    @record_function("decorated", "3")
    def function():
        return torch.ones(1)

    with profile() as prof:
        function()
        function()
    assert len(named(prof.function_events, "decorated(3)")) == 2
    with pytest.raises(TypeError, match="argument 'name' must be str, not int"):
        record_function(3)
    with pytest.raises(RuntimeError, match="didn't finish running"):
        profile().table()
    with profile() as outer, pytest.raises(RuntimeError, match="Profiler is already enabled"), profile():
        raise AssertionError
    with pytest.raises(RuntimeError, match="not reentrant"), outer:
        raise AssertionError


# --- steps ----------------------------------------------------------------------------------------------------------


def test_schedule():
    action = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    expected = "NONE NONE WARMUP RECORD RECORD_AND_SAVE NONE WARMUP RECORD RECORD_AND_SAVE NONE NONE"
    assert [action(step).name for step in range(11)] == expected.split()
    with pytest.warns(UserWarning, match="won't be using warmup"):
        assert schedule(wait=0, warmup=0, active=1)(5) is ProfilerAction.RECORD_AND_SAVE
    with pytest.raises(AssertionError, match="Invalid profiler schedule arguments. Got wait=-1"):
        schedule(wait=-1, warmup=0, active=1)
    with pytest.raises(AssertionError, match=r"active=0 \(need > 0\)"):
        schedule(wait=1, warmup=0, active=0)


def test_steps_that_a_schedule_chooses(tmp_path):
    traces = []

    def ready(prof):
        traces.append([event.name for event in prof.events()])
        prof.export_chrome_trace(tmp_path / f"{len(traces)}.json.gz")

    x = torch.ones(2)
    with (
        pytest.warns(UserWarning, match="Profiler clears events at the end of each cycle"),
        stepwise(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as prof,
    ):
        prof.add_metadata("who", "me")
        for step in range(9):
            x.exp()
            assert prof.step_num == step
            prof.step()
    assert traces == [
        ["ProfilerStep*", "aten::exp", "ProfilerStep*", "aten::exp"],
        ["ProfilerStep*", "aten::exp", "ProfilerStep*", "aten::exp"],
    ]
    with gzip.open(tmp_path / "1.json.gz", "rt") as file:
        trace = json.load(file)
    assert trace["who"] == "me"
    assert "ProfilerStep#3" in [event["name"] for event in trace["traceEvents"]]
    assert len(trace["traceEvents"]) == 5
    assert not torch._C._profiler_enabled()


def test_events_of_all_cycles():
    with stepwise(schedule=schedule(wait=1, warmup=1, active=1), acc_events=True) as prof:
        for _ in range(9):
            torch.ones(1)
            prof.step()
    assert [event.name for event in prof.events()] == ["ProfilerStep*", "aten::ones"] * 3
    assert {average.key: average.count for average in prof.key_averages()} == {"ProfilerStep*": 3, "aten::ones": 3}


def test_without_a_schedule(tmp_path):
    with stepwise(
        on_trace_ready=tensorboard_trace_handler(tmp_path / "runs", worker_name="w"), with_stack=True
    ) as prof:
        torch.ones(2).exp()
        prof.step()
        torch.ones(2).exp()
    assert {a.key: a.count for a in prof.key_averages()} == {"aten::ones": 2, "aten::exp": 2}
    (file,) = (tmp_path / "runs").iterdir()
    assert file.name.startswith("w.")
    assert file.name.endswith(".pt.trace.json")
    prof.export_stacks(tmp_path / "stacks")
    for line in (tmp_path / "stacks").read_text().splitlines():
        assert line.rsplit(" ", 1)[1].isdigit()


def test_results_before_there_are_any():
    for ask, words in (
        (lambda p: p.key_averages(), "getting key averages"),
        (lambda p: p.events(), "accessing events"),
        (lambda p: p.export_chrome_trace("never"), "exporting chrome trace"),
    ):
        with pytest.raises(AssertionError, match=f"Profiler must be initialized before {words}"):
            ask(stepwise())


def test_activities():
    activity = torch.profiler.ProfilerActivity
    assert torch.profiler.supported_activities() == {activity.CPU}
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        stepwise(activities=[activity.CPU, activity.CUDA])
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        profile(use_cuda=True)
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        stepwise(activities=[])
    with pytest.raises(AssertionError, match="No activities specified for the profiler"):
        stepwise(activities=[activity.XPU])


# --- pictures -------------------------------------------------------------------------------------------------------


def test_picture_shows_time_and_bytes_of_each_node():
    x, w = problem()
    with stepwise(profile_memory=True) as prof:
        y = (x @ w).sin().sum()
        y.backward(retain_graph=True)
    lines = str(draw(y, profile=prof)).splitlines()
    for name in ("MmBackward0", "SinBackward0", "SumBackward0"):
        (line,) = [line for line in lines if f" {name} (" in line]
        assert "; forward " in line or "(forward " in line
        assert "us, +" in line
        assert "; backward " in line
    assert "forward" in lines[-1]
    assert "backward" in lines[-1]
    assert "forward" not in str(draw(y)).splitlines()[-1]
    assert "AccumulateGrad (backward" in str(draw(y, profile=prof.events()))
    folded = str(draw(y, profile=prof, max_boxes=2))
    assert "forward" in folded
    with pytest.raises(TypeError, match="expected profile to be a finished"):
        draw(y, profile=3)
    with pytest.raises(TypeError, match="expected profile to be a finished"):
        draw(y, profile=profile())


def test_picture_of_another_graph_shows_nothing():
    x, w = problem()
    with profile() as prof:
        (x @ w).sum().backward()
    assert "forward" not in str(draw((x @ w).sum(), profile=prof))


def test_stacks_are_written_only_where_they_were_kept(tmp_path):
    for kind in (profile, stepwise):
        with kind() as prof:
            torch.ones(2).exp()
        with pytest.raises(AssertionError, match="requires with_stack=True"):
            prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")


def test_arguments_and_attributes_that_programs_use(tmp_path):
    with pytest.warns(FutureWarning, match="use_cuda"):
        prof = stepwise(use_cuda=False)
    with pytest.raises(AssertionError, match="must be initialized before stopping"):
        prof.stop()
    with prof:
        prof.preset_metadata_json("numbers", "[1, 2]")
        torch.ones(2).exp()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    assert json.loads(path.read_text())["numbers"] == [1, 2]
    event = next(e for e in prof.key_averages(group_by_overload_name=True) if e.key == "aten::exp")
    assert (event.node_id, event.is_async, event.use_device, event.device_type.name) == (0, False, None, "CPU")
    assert prof.events().key_averages(group_by_input_shapes=True)
    assert torch.profiler.kineto_available() and tensorboard_trace_handler(str(tmp_path), use_python_export=True)
