"""What PyTorch has and rushlight has not yet, as far as tests meet it (see conftest.py)."""

# dotted names below torch
ABSENT = {
    "complex": "complex",
    "view_as_real": "view_as_real",
}

# Behaviour that is still to be built, by the tests that ask for it: each must fail.
_COMPLEX = "complex arithmetic"
FAILING = {
    "test_autograd_oracle.py::test_engine[grad with a complex cotangent]": _COMPLEX,
    "test_functional.py::test_complex_outputs_are_refused_by_rows": _COMPLEX,
    "test_printing.py::test_conjugated_views_show_their_values": _COMPLEX,
    "test_io_formats.py::test_numbers_that_pytorch_turns_when_read[conj]": _COMPLEX,
    "test_io_formats.py::test_numbers_that_pytorch_turns_when_read[imag]": _COMPLEX,
    "test_backward.py::test_complex_output_needs_a_gradient": _COMPLEX,
    "test_backward.py::test_complex_gradient_for_a_real_output": _COMPLEX,
    "test_lbfgs.py::test_complex_parameters": _COMPLEX,
    "test_functional.py::test_complex_products_follow_the_conjugate_convention": _COMPLEX,
    "test_nn_seq_resize.py::test_normalize": _COMPLEX,
    "test_reports_numbers.py::test_A95_complex_gradients_are_conjugates": _COMPLEX,
    "test_reports_numbers.py::test_A95_backward_of_a_complex_scalar": _COMPLEX,
    "test_reports_numbers.py::test_A95_real_leaf_through_complex_operations": _COMPLEX,
    "test_assert_close.py::test_close_tensors_pass[actual4-expected4]": _COMPLEX,
    "test_assert_close.py::test_default_tolerances[complex64-(1+1e-06j)-(1+2e-05j)-1.3e-06-1e-05]": _COMPLEX,
    "test_assert_close.py::test_default_tolerances[complex128-(1+1e-07j)-(1+3e-07j)-1e-07-1e-07]": _COMPLEX,
}
