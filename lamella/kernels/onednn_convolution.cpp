// Convolutions through oneDNN, computed channels-last; weights are brought into the layout
// the implementation wants, and back.
#include "lamella/kernels/convolution_problem.h"
#include "lamella/kernels/onednn.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

enum class Kind : int64_t { Forward = 16, BackwardData, BackwardWeights };

dnnl::memory::dims dims(const Spatial& spatial) {
  return {spatial.begin(), spatial.end()};
}

// oneDNN counts the elements skipped between two taps.
dnnl::memory::dims dilates(const ConvolutionProblem& problem) {
  dnnl::memory::dims all = dims(problem.dilation);
  for (int64_t& dilation : all) --dilation;
  return all;
}

Axes channels_last_strides(const Axes& sizes) {
  Axes strides(sizes.size(), 1);
  int64_t stride = sizes[1];
  for (uint32_t axis = sizes.size(); axis-- > 2;) {
    strides[axis] = stride;
    stride *= sizes[axis];
  }
  strides[0] = stride;
  return strides;
}

dnnl::memory::desc channels_last(const TensorView& view) {
  return onednn::plain(view.dtype, view.sizes, channels_last_strides(view.sizes));
}

// The view as it lies.
dnnl::memory::desc given(const TensorView& view) {
  return is_channels_last(view)
             ? channels_last(view)
             : onednn::plain(view.dtype, view.sizes, row_major_strides(view.sizes));
}

// Sizes [groups, K / groups, C / groups, kernel...], without the first for one group.
Axes weight_sizes(const ConvolutionProblem& problem) {
  Axes sizes;
  if (problem.groups > 1) sizes.push_back(problem.groups);
  sizes.push_back(problem.out_channels / problem.groups);
  sizes.push_back(problem.in_channels / problem.groups);
  for (int64_t size : problem.kernel) sizes.push_back(size);
  return sizes;
}

dnnl::memory::desc given_weight(const ConvolutionProblem& problem, const TensorView& weight) {
  Axes strides = weight.strides;
  if (problem.groups > 1) {
    strides.insert(0, problem.out_channels / problem.groups * weight.strides[0]);
  }
  return onednn::plain(weight.dtype, weight_sizes(problem), strides);
}

onednn::Signature signature_of(Kind kind, const ConvolutionProblem& problem, const TensorView& x,
                               const TensorView& y, const TensorView& weight, bool has_bias) {
  onednn::Signature signature = {static_cast<int64_t>(kind),
                                 static_cast<int64_t>(x.dtype),
                                 problem.spatial_rank(),
                                 problem.batch,
                                 problem.in_channels,
                                 problem.out_channels,
                                 problem.groups,
                                 has_bias,
                                 is_channels_last(x),
                                 is_channels_last(y)};
  for (const Spatial* sizes : {&problem.in, &problem.kernel, &problem.out, &problem.stride,
                               &problem.before, &problem.after, &problem.dilation}) {
    for (int64_t size : *sizes) signature.push_back(size);
  }
  for (int64_t stride : weight.strides) signature.push_back(stride);
  return signature;
}

dnnl::convolution_forward::primitive_desc forward_desc(DType dtype,
                                                       const ConvolutionProblem& problem,
                                                       const dnnl::memory::desc& x,
                                                       const dnnl::memory::desc& y,
                                                       const dnnl::memory::desc& bias) {
  return {onednn::engine(),
          dnnl::prop_kind::forward_training,
          dnnl::algorithm::convolution_direct,
          x,
          onednn::any_layout(dtype, weight_sizes(problem)),
          bias,
          y,
          dims(problem.stride),
          dilates(problem),
          dims(problem.before),
          dims(problem.after),
          onednn::attributes()};
}

void build_forward(onednn::Plan& plan, const ConvolutionProblem& problem, const TensorView& x,
                   const TensorView& weight, bool has_bias, const TensorView& y) {
  const DType dtype = x.dtype;
  const int x_slot = plan.caller_slot(given(x));
  const int weight_slot = plan.caller_slot(given_weight(problem, weight));
  const int y_slot = plan.caller_slot(given(y));
  const dnnl::memory::desc bias =
      has_bias ? onednn::plain(dtype, {problem.out_channels}, {1}) : dnnl::memory::desc();
  const int bias_slot = has_bias ? plan.caller_slot(bias) : -1;
  const auto desc = forward_desc(dtype, problem, channels_last(x), channels_last(y), bias);
  const int x_used = plan.in_layout(x_slot, desc.src_desc());
  const int weight_used = plan.in_layout(weight_slot, desc.weights_desc());
  const bool direct = is_channels_last(y);
  const int y_used = direct ? y_slot : plan.scratch_slot(desc.dst_desc());
  std::vector<std::pair<int, int>> arguments = {
      {DNNL_ARG_SRC, x_used}, {DNNL_ARG_WEIGHTS, weight_used}, {DNNL_ARG_DST, y_used}};
  if (has_bias) arguments.emplace_back(DNNL_ARG_BIAS, bias_slot);
  plan.add(dnnl::convolution_forward(desc), std::move(arguments));
  plan.reorder(y_used, y_slot);
}

void build_backward_data(onednn::Plan& plan, const ConvolutionProblem& problem,
                         const TensorView& dy, const TensorView& weight, const TensorView& dx) {
  const DType dtype = dx.dtype;
  const int dy_slot = plan.caller_slot(given(dy));
  const int weight_slot = plan.caller_slot(given_weight(problem, weight));
  const int dx_slot = plan.caller_slot(given(dx));
  const auto hint = forward_desc(dtype, problem, channels_last(dx), channels_last(dy), {});
  const dnnl::convolution_backward_data::primitive_desc desc(
      onednn::engine(), dnnl::algorithm::convolution_direct, channels_last(dx),
      onednn::any_layout(dtype, weight_sizes(problem)), channels_last(dy), dims(problem.stride),
      dilates(problem), dims(problem.before), dims(problem.after), hint, onednn::attributes());
  const int dy_used = plan.in_layout(dy_slot, desc.diff_dst_desc());
  const int weight_used = plan.in_layout(weight_slot, desc.weights_desc());
  const int dx_used = is_channels_last(dx) ? dx_slot : plan.scratch_slot(desc.diff_src_desc());
  plan.add(dnnl::convolution_backward_data(desc), {{DNNL_ARG_DIFF_DST, dy_used},
                                                   {DNNL_ARG_WEIGHTS, weight_used},
                                                   {DNNL_ARG_DIFF_SRC, dx_used}});
  plan.reorder(dx_used, dx_slot);
}

void build_backward_weights(onednn::Plan& plan, const ConvolutionProblem& problem,
                            const TensorView& x, const TensorView& dy, const TensorView& dweight) {
  const DType dtype = x.dtype;
  const int x_slot = plan.caller_slot(given(x));
  const int dy_slot = plan.caller_slot(given(dy));
  const int weight_slot = plan.caller_slot(given_weight(problem, dweight));
  const auto hint = forward_desc(dtype, problem, channels_last(x), channels_last(dy), {});
  const dnnl::convolution_backward_weights::primitive_desc desc(
      onednn::engine(), dnnl::algorithm::convolution_direct, channels_last(x),
      onednn::any_layout(dtype, weight_sizes(problem)), channels_last(dy), dims(problem.stride),
      dilates(problem), dims(problem.before), dims(problem.after), hint, onednn::attributes());
  const int x_used = plan.in_layout(x_slot, desc.src_desc());
  const int dy_used = plan.in_layout(dy_slot, desc.diff_dst_desc());
  const bool direct = desc.diff_weights_desc() == given_weight(problem, dweight);
  const int weight_used = direct ? weight_slot : plan.scratch_slot(desc.diff_weights_desc());
  plan.add(
      dnnl::convolution_backward_weights(desc),
      {{DNNL_ARG_SRC, x_used}, {DNNL_ARG_DIFF_DST, dy_used}, {DNNL_ARG_DIFF_WEIGHTS, weight_used}});
  plan.reorder(weight_used, weight_slot);
}

using SharedPlan = std::shared_ptr<const onednn::Plan>;

SharedPlan forward_plan(const ConvolutionProblem& problem, const TensorView& x,
                        const TensorView& weight, bool has_bias, const TensorView& y) {
  return onednn::plan_for(
      signature_of(Kind::Forward, problem, x, y, weight, has_bias),
      [&](onednn::Plan& plan) { build_forward(plan, problem, x, weight, has_bias, y); });
}

SharedPlan backward_data_plan(const ConvolutionProblem& problem, const TensorView& dy,
                              const TensorView& weight, const TensorView& dx) {
  return onednn::plan_for(
      signature_of(Kind::BackwardData, problem, dx, dy, weight, false),
      [&](onednn::Plan& plan) { build_backward_data(plan, problem, dy, weight, dx); });
}

SharedPlan backward_weights_plan(const ConvolutionProblem& problem, const TensorView& x,
                                 const TensorView& dy, const TensorView& dweight) {
  return onednn::plan_for(
      signature_of(Kind::BackwardWeights, problem, x, dy, dweight, false),
      [&](onednn::Plan& plan) { build_backward_weights(plan, problem, x, dy, dweight); });
}

void run(const onednn::Plan& plan, std::span<void* const> pointers, Scratch scratch) {
  ScratchParts parts(scratch, plan.scratch_bytes());
  plan.run(pointers, parts.take(plan.scratch_bytes()));
}

}  // namespace

void convolution_onednn(const ConvolutionProblem& problem, const TensorView& x,
                        const TensorView& weight, const TensorView* bias, const TensorView& y,
                        Scratch scratch) {
  void* const pointers[] = {x.data, weight.data, y.data, bias != nullptr ? bias->data : nullptr};
  run(*forward_plan(problem, x, weight, bias != nullptr, y), pointers, scratch);
}

void convolution_backward_data_onednn(const ConvolutionProblem& problem, const TensorView& dy,
                                      const TensorView& weight, const TensorView& dx,
                                      Scratch scratch) {
  void* const pointers[] = {dy.data, weight.data, dx.data};
  run(*backward_data_plan(problem, dy, weight, dx), pointers, scratch);
}

void convolution_backward_weights_onednn(const ConvolutionProblem& problem, const TensorView& x,
                                         const TensorView& dy, const TensorView& dweight,
                                         Scratch scratch) {
  void* const pointers[] = {x.data, dy.data, dweight.data};
  run(*backward_weights_plan(problem, x, dy, dweight), pointers, scratch);
}

int64_t convolution_onednn_scratch_bytes(const ConvolutionProblem& problem, const TensorView& x,
                                         const TensorView& weight, const TensorView* bias,
                                         const TensorView& y) {
  return forward_plan(problem, x, weight, bias != nullptr, y)->scratch_bytes();
}

int64_t convolution_backward_data_onednn_scratch_bytes(const ConvolutionProblem& problem,
                                                       const TensorView& dy,
                                                       const TensorView& weight,
                                                       const TensorView& dx) {
  return backward_data_plan(problem, dy, weight, dx)->scratch_bytes();
}

int64_t convolution_backward_weights_onednn_scratch_bytes(const ConvolutionProblem& problem,
                                                          const TensorView& x, const TensorView& dy,
                                                          const TensorView& dweight) {
  return backward_weights_plan(problem, x, dy, dweight)->scratch_bytes();
}

}  // namespace lamella::kernels
