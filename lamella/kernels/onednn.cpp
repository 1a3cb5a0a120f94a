// Plans: caching, memory objects, execution.
#include "lamella/kernels/onednn.h"

#include <list>
#include <mutex>
#include <unordered_map>

#include "lamella/base/error.h"
#include "lamella/base/hash.h"
#include "lamella/base/parallel.h"
#include "lamella/base/remark.h"
#include "lamella/kernels/library_dtypes.h"

namespace lamella::kernels::onednn {

namespace {

// A plan takes about 100 KB (up to 200), nearly all of it machine code.
constexpr size_t kCachedPlans = 640;

dnnl::stream& stream() {
  thread_local dnnl::stream stream(engine());
  return stream;
}

[[noreturn]] void fail_from(const dnnl::error& error) {
  fail(error.status == dnnl_out_of_memory   ? ErrorKind::Memory
       : error.status == dnnl_unimplemented ? ErrorKind::Unsupported
                                            : ErrorKind::Internal,
       "[onednn] {}", error.what());
}

void check(dnnl_status_t status, const char* what) {
  if (status != dnnl_success) [[unlikely]]
    fail_from(dnnl::error(status, what));
}

struct SignatureHash {
  size_t operator()(const Signature& signature) const {
    Hasher hasher;
    for (int64_t word : signature) hasher.add(static_cast<uint64_t>(word));
    return hasher.digest().low;
  }
};

class PlanCache {
 public:
  std::shared_ptr<const Plan> find(const Signature& signature) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(signature);
    if (found == entries_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->plan;
  }

  void insert(const Signature& signature, std::shared_ptr<const Plan> plan) {
    std::lock_guard lock(mutex_);
    if (entries_.contains(signature)) return;
    order_.push_front({signature, std::move(plan)});
    entries_.emplace(signature, order_.begin());
    if (order_.size() <= kCachedPlans) return;
    entries_.erase(order_.back().signature);
    order_.pop_back();
  }

 private:
  struct Entry {
    Signature signature;
    std::shared_ptr<const Plan> plan;
  };

  std::mutex mutex_;
  std::list<Entry> order_;  // the most recently used first
  std::unordered_map<Signature, std::list<Entry>::iterator, SignatureHash> entries_;
};

PlanCache& cache() {
  static PlanCache* cache = new PlanCache;
  return *cache;
}

dnnl::memory::dims dims(const Axes& axes) {
  return {axes.begin(), axes.end()};
}

dnnl::memory::data_type data_type(DType dtype) {
  LAMELLA_CHECK(dtype == DType::Float32 || dtype == DType::BFloat16);
  return dtype == DType::Float32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

constexpr int64_t aligned(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

dnnl::engine& engine() {
  // Never destroyed: plans live as long as the process. oneDNN's own cache would only hold what
  // ours has dropped.
  static dnnl::engine* engine = [] {
    dnnl::set_primitive_cache_capacity(0);
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *engine;
}

dnnl::memory::desc plain(DType dtype, const Axes& sizes, const Axes& strides) {
  return {dims(sizes), data_type(dtype), dims(strides)};
}

dnnl::memory::desc any_layout(DType dtype, const Axes& sizes) {
  return {dims(sizes), data_type(dtype), dnnl::memory::format_tag::any};
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attributes;
}

void append(Signature& signature, const TensorView& view) {
  signature.push_back(view.rank());
  for (uint32_t i = 0; i < view.sizes.size(); ++i) {
    signature.push_back(view.sizes[i]);
    signature.push_back(view.strides[i]);
  }
}

// The memory objects of one run, and the argument lists over them.
struct Plan::Context {
  std::vector<dnnl::memory> slots;
  std::vector<std::vector<dnnl_exec_arg_t>> arguments;
};

Plan::~Plan() {
  delete idle_.load();
}

int Plan::caller_slot(const dnnl::memory::desc& desc) {
  LAMELLA_CHECK(scratch_bytes_ == 0);
  slots_.push_back({desc, -1});
  return static_cast<int>(slots_.size()) - 1;
}

int Plan::scratch_slot(const dnnl::memory::desc& desc) {
  slots_.push_back({desc, scratch_bytes_});
  scratch_bytes_ += aligned(static_cast<int64_t>(desc.get_size()));
  return static_cast<int>(slots_.size()) - 1;
}

void Plan::add(const dnnl::primitive& primitive,
               std::vector<std::pair<int, int>> arguments_to_slots) {
  const_dnnl_primitive_desc_t desc = nullptr;
  check(dnnl_primitive_get_primitive_desc(primitive.get(), &desc), "primitive descriptor");
  const_dnnl_memory_desc_t scratchpad =
      dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
  if (scratchpad != nullptr && dnnl_memory_desc_get_size(scratchpad) > 0) {
    dnnl_memory_desc_t copied = nullptr;
    check(dnnl_memory_desc_clone(&copied, scratchpad), "scratchpad descriptor");
    arguments_to_slots.emplace_back(DNNL_ARG_SCRATCHPAD, scratch_slot(dnnl::memory::desc(copied)));
  }
  steps_.push_back({primitive, std::move(arguments_to_slots)});
}

int Plan::in_layout(int slot, const dnnl::memory::desc& wanted) {
  if (slots_[static_cast<size_t>(slot)].desc == wanted) return slot;
  const int reordered = scratch_slot(wanted);
  reorder(slot, reordered);
  return reordered;
}

void Plan::reorder(int from, int to) {
  if (from == to) return;
  const dnnl::reorder::primitive_desc desc(engine(), slots_[static_cast<size_t>(from)].desc,
                                           engine(), slots_[static_cast<size_t>(to)].desc,
                                           attributes());
  add(dnnl::reorder(desc), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

std::unique_ptr<Plan::Context> Plan::make_context() const {
  auto context = std::make_unique<Context>();
  for (const Slot& slot : slots_) context->slots.emplace_back(slot.desc, engine(), nullptr);
  for (const Step& step : steps_) {
    std::vector<dnnl_exec_arg_t>& arguments = context->arguments.emplace_back();
    for (const auto& [argument, slot] : step.arguments_to_slots) {
      arguments.push_back({argument, context->slots[static_cast<size_t>(slot)].get()});
    }
  }
  return context;
}

std::string Plan::description() const {
  std::string text = "oneDNN:";
  for (const Step& step : steps_) {
    const_dnnl_primitive_desc_t desc = nullptr;
    const char* implementation = "?";
    check(dnnl_primitive_get_primitive_desc(step.primitive.get(), &desc), "primitive descriptor");
    check(dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0,
                                    static_cast<void*>(&implementation)),
          "implementation");
    text += fmt::format(
        " {} ({})",
        step.primitive.get_kind() == dnnl::primitive::kind::reorder ? "reorder" : "convolution",
        implementation);
  }
  return text;
}

void Plan::run(std::span<void* const> pointers, void* scratch) const {
  std::unique_ptr<Context> context(idle_.exchange(nullptr, std::memory_order_acquire));
  if (!context) context = make_context();
  for (size_t i = 0; i < slots_.size(); ++i) {
    const int64_t offset = slots_[i].scratch_offset;
    void* data = offset < 0 ? pointers[i] : static_cast<char*>(scratch) + offset;
    check(dnnl_memory_set_data_handle(context->slots[i].get(), data), "memory");
  }
  remark([&] { return description(); });
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto& arguments = context->arguments[i];
    check(dnnl_primitive_execute(steps_[i].primitive.get(), stream().get(),
                                 static_cast<int>(arguments.size()), arguments.data()),
          "execution");
  }
  delete idle_.exchange(context.release(), std::memory_order_acq_rel);
}

std::shared_ptr<const Plan> plan_for(const Signature& signature, FunctionRef<void(Plan&)> build) {
  Signature key = signature;
  // Primitives divide their work by the number of threads they were made for.
  key.push_back(prepare_openmp_library());
  if (auto plan = cache().find(key)) return plan;
  auto plan = std::make_shared<Plan>();
  try {
    build(*plan);
  } catch (const dnnl::error& error) {
    fail_from(error);
  }
  cache().insert(key, plan);
  return plan;
}

}  // namespace lamella::kernels::onednn

namespace lamella::kernels {

namespace {

bool is_amd() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

}  // namespace

bool library_takes(DType dtype) {
  static const bool fast_bfloat16 = [] {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    return isa >= dnnl::cpu_isa::avx512_core_amx ||
           (isa >= dnnl::cpu_isa::avx512_core_bf16 && is_amd());
  }();
  return dtype == DType::Float32 || (dtype == DType::BFloat16 && fast_bfloat16);
}

}  // namespace lamella::kernels
