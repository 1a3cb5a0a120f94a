// Loops and branches whose bodies are graphs. lamella/transform/control_flow.h has the functions
// that record them.
//
// A region's inputs: the number of the turn, what is carried from turn to turn, a slice of each
// sequence, and what the body reads of outside. An operator's operands are in the same order.
#include "lamella/ir/region.h"
#include "lamella/ops/custom_gradient.h"
#include "lamella/ops/functions.h"

namespace lamella {

namespace {

size_t count_attribute(const InferCall& call, size_t index) {
  return static_cast<size_t>(call.attribute<int64_t>(index));
}

void check_carried(const InferCall& call, const Region& body, size_t from, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const TensorType &carried = call.operand(from + i), &next = body.graph().outputs[i]->type();
    if (carried == next) continue;
    fail(ErrorKind::Value,
         "[{}] the body must give for what it carries (number {}) the shape and dtype it was "
         "given, {}, "
         "but gives {}",
         call.op.name(), i, text(carried), text(next));
  }
}

template <size_t attribute>
Gradient gradient_by_rule() {
  return vjp([](VjpCall& call) {
    apply_custom_gradient(call.attribute<Ref<AttributeObject>>(attribute), call);
  });
}

}  // namespace

LAMELLA_OP_MULTI(scan, (Operands values, ObjectAttribute body, int64_t carried, int64_t sequences, Shape length,
                        bool reverse, ObjectAttribute gradient),
    .doc = "Runs the body once for each index of the sequences' first axis, or `length` times, from the last turn "
           "to the first if reverse. Gives what is carried after the last turn, and the other results of the body "
           "stacked along a new first axis, at their turn's index.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const Region& body = region_of(*call.attributes, 0);
      const size_t carried = count_attribute(call, 1);
      const Dim length = call.attribute<Shape>(3)[0];
      check_carried(call, body, 0, carried);
      for (size_t i = 0; i < body.graph().outputs.size(); ++i) {
        TensorType type = body.graph().outputs[i]->type();
        if (i >= carried) {
          type.shape.insert(0, length);
          type.layout = Layout::RowMajor;
        }
        call.results.push_back(type);
      }
    },
    .lower = control(Control::Scan),
    .vjp = gradient_by_rule<5>(),
    .batch = batch::scan_body,
    .reference = numpy("", 0), .cost = Cost{0}, .samples = Samples{})

LAMELLA_OP_MULTI(branch, (Operands values, ObjectAttribute then, ObjectAttribute otherwise, ObjectAttribute gradient),
    .doc = "The results of one of two regions: of `then` where the first operand, a bool, holds.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const Graph &then = region_of(*call.attributes, 0).graph(), &otherwise = region_of(*call.attributes, 1).graph();
      const TensorType& condition = call.operand(0);
      if (condition.dtype != DType::Bool || !element_count(condition.shape).is(1)) {
        fail(ErrorKind::Type, "[cond] the condition must be one bool, got {}", text(condition));
      }
      if (then.outputs.size() != otherwise.outputs.size()) {
        fail(ErrorKind::Value, "[cond] the branches must give equally many results, got {} and {}",
             then.outputs.size(), otherwise.outputs.size());
      }
      for (size_t i = 0; i < then.outputs.size(); ++i) {
        const TensorType &a = then.outputs[i]->type(), &b = otherwise.outputs[i]->type();
        if (a != b) {
          fail(ErrorKind::Value, "[cond] result {} must have one shape and dtype in both branches, got {} and {}",
               i, text(a), text(b));
        }
        call.results.push_back(a);
      }
    },
    .lower = control(Control::Branch),
    .vjp = gradient_by_rule<2>(),
    .batch = batch::branches,
    .reference = numpy("", 0), .cost = Cost{0}, .samples = Samples{})

LAMELLA_OP_MULTI(while_loop, (Operands values, ObjectAttribute condition, ObjectAttribute body, int64_t carried,
                              ObjectAttribute gradient),
    .doc = "Runs the body as long as the condition gives true for what is carried. Gives what is carried in the "
           "end, and the number of turns.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const TensorType& goes_on = region_of(*call.attributes, 0).graph().outputs[0]->type();
      if (goes_on.dtype != DType::Bool || !element_count(goes_on.shape).is(1)) {
        fail(ErrorKind::Type, "[while_loop] the condition must give one bool, got {}", text(goes_on));
      }
      const size_t carried = count_attribute(call, 2);
      check_carried(call, region_of(*call.attributes, 1), 0, carried);
      for (size_t i = 0; i < carried; ++i) call.results.push_back(call.operand(i));
      call.results.push_back({DType::Int64, Layout::RowMajor, {}});
    },
    .lower = control(Control::While),
    .vjp = gradient_by_rule<3>(),
    .batch = batch::one_by_one,
    .reference = numpy("", 0), .cost = Cost{0}, .samples = Samples{})

LAMELLA_OP_MULTI(while_loop_backward, (Operands values, ObjectAttribute body, ObjectAttribute backward, int64_t carried,
                                       int64_t captured, int64_t cotangents),
    .doc = "The backward pass of while_loop. Operands: what was carried in first, what the body reads of outside, "
           "the number of turns, and the state of the backward region: cotangents of what is carried, then sums. "
           "Runs the body again, keeping what every turn begins with, then the backward region from the last turn "
           "to the first; gives its state after that.",
    .accepts = kAnyDType,
    .infer = [](InferCall& call) {
      const size_t first = count_attribute(call, 2) + count_attribute(call, 3) + 1;
      for (size_t i = 0; i < count_attribute(call, 4); ++i) call.results.push_back(call.operand(first + i));
    },
    .lower = control(Control::WhileBackward),
    .vjp = not_differentiable("it is the gradient of a while loop; a loop with a known number of turns (scan) can be "
                              "differentiated again"),
    .batch = batch::one_by_one,
    .reference = numpy("", 0), .cost = Cost{0}, .samples = Samples{})

}  // namespace lamella
