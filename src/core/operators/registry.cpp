#include "operators/registry.h"

#include <map>
#include <memory>

namespace rushlight {
namespace {

auto& table() {
  static auto* operators = new std::map<std::string, std::unique_ptr<Operator>, std::less<>>;
  return *operators;
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

ArgType type_of(std::string_view name, std::string_view signature) {
  static const std::pair<std::string_view, ArgType> names[] = {
      {"Tensor", ArgType::Tensor},       {"Tensor[]", ArgType::Tensors},
      {"Scalar", ArgType::Scalar},       {"int", ArgType::Int},
      {"int[]", ArgType::Ints},          {"bool", ArgType::Bool},
      {"float", ArgType::Float},         {"dtype", ArgType::DType},
      {"str", ArgType::String},          {"device", ArgType::Device},
      {"layout", ArgType::Layout},       {"memory_format", ArgType::MemoryFormat},
      {"generator", ArgType::Generator}, {"object", ArgType::Object},
  };
  for (auto& [text, type] : names)
    if (text == name) return type;
  fail("the signature '", signature, "' has the unknown type '", name, "'");
}

void parse_default(Param& p, std::string_view signature) {
  const std::string& text = p.default_text;
  p.default_none = text == "None";
  if (p.default_none) {
    check(p.optional || p.type == ArgType::Generator || p.type == ArgType::Device || p.type == ArgType::Layout ||
              p.type == ArgType::MemoryFormat,
          "the signature '", signature, "' gives None to '", p.name, "', which is not optional");
    return;
  }
  switch (p.type) {
    case ArgType::Bool:
      p.default_number = Scalar(text == "True");
      break;
    case ArgType::Int:
      p.default_number = Scalar(std::int64_t(std::stoll(text)));
      break;
    case ArgType::Float:
      p.default_number = Scalar(std::stod(text));
      break;
    case ArgType::Scalar:
      if (text == "True" || text == "False")
        p.default_number = Scalar(text == "True");
      else
        p.default_number =
            text.find_first_of(".en") == text.npos ? Scalar(std::int64_t(std::stoll(text))) : Scalar(std::stod(text));
      break;
    case ArgType::Ints:
      if (text[0] == '[') {
        for (std::size_t at = 1; at < text.size() && text[at] != ']';) {
          std::size_t used;
          p.default_ints.push_back(std::stoll(text.substr(at), &used));
          at += used;
          while (at < text.size() && (text[at] == ',' || text[at] == ' ')) ++at;
        }
      } else {
        for (int i = 0; i < std::max(p.expand, 1); ++i) p.default_ints.push_back(std::stoll(text));
      }
      break;
    case ArgType::String:
      p.default_text = text.substr(1, text.size() - 2);
      break;
    default:
      fail("the signature '", signature, "' has a default for '", p.name, "' that cannot be read");
  }
}

Param parse_param(std::string_view text, std::string_view signature) {
  Param p;
  auto space = text.find(' ');
  check(space != text.npos, "the signature '", signature, "' has a parameter without type: '", text, "'");
  std::string type(text.substr(0, space));
  auto rest = trim(text.substr(space));
  auto equals = rest.find('=');
  p.name = std::string(trim(rest.substr(0, equals)));
  if (equals != rest.npos) {
    p.has_default = true;
    p.default_text = std::string(trim(rest.substr(equals + 1)));
  }
  if (type.back() == '?') {
    p.optional = true;
    type.pop_back();
  }
  if (type.starts_with("int[") && type != "int[]") {
    p.expand = std::stoi(type.substr(4));
    type = "int[]";
  }
  p.type = type_of(type, signature);
  if (p.has_default) parse_default(p, signature);
  return p;
}

}  // namespace

Operator& define_operator(std::string_view signature, unsigned forms, const char* doc,
                          Result (*call)(const Overload&, Value*), void (*function)(), std::vector<std::string> fields,
                          std::string returns) {
  auto open = signature.find('('), close = signature.rfind(')');
  check(open != signature.npos && close != signature.npos, "the signature '", signature, "' has no parameter list");
  std::string name(trim(signature.substr(0, open)));
  Overload o;
  o.signature = std::string(signature);
  o.call = call;
  o.function = function;
  o.fields = std::move(fields);
  o.returns = std::move(returns);
  auto inside = signature.substr(open + 1, close - open - 1);
  bool keyword_only = false;
  while (!trim(inside).empty()) {
    std::size_t end = 0;
    int depth = 0;
    for (; end < inside.size() && (inside[end] != ',' || depth); ++end)
      depth += inside[end] == '(' || inside[end] == '[' ? 1 : inside[end] == ')' || inside[end] == ']' ? -1 : 0;
    auto part = trim(inside.substr(0, end));
    inside = end < inside.size() ? inside.substr(end + 1) : std::string_view();
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    Param p = parse_param(part, signature);
    p.keyword_only = keyword_only;
    o.params.push_back(std::move(p));
  }
  auto& slot = table()[name];
  if (!slot) {
    slot = std::make_unique<Operator>();
    slot->name = name;
    slot->forms = forms;
  }
  slot->forms |= forms;
  if (slot->doc.empty()) slot->doc = doc;
  slot->overloads.push_back(std::move(o));
  return *slot;
}

std::vector<Operator*> all_operators() {
  std::vector<Operator*> out;
  for (auto& [name, op] : table()) out.push_back(op.get());
  return out;
}

}  // namespace rushlight
