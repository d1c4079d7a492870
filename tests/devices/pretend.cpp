// A pretend accelerator for PyTorch: a PrivateUse1 backend over host memory, on which any mixture of devices fails.
//
// Every operator runs the CPU's kernel on copies of its arguments.  What a GPU refuses is refused here too: an operator
// with tensors of both devices (scalars and indices excepted, as with CUDA), and memory beyond a limit.
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <atomic>
#include <cstring>
#include <string>

namespace {

constexpr auto kDevice = at::DeviceType::PrivateUse1;
std::atomic<int64_t> held{0}, peak{0}, limit{0}, operations{0};

struct Block {
  size_t size;
};

struct Allocator final : at::Allocator {
  at::DataPtr allocate(size_t n) override {
    const int64_t now = held += static_cast<int64_t>(n);
    if (limit > 0 && now > limit) {
      held -= static_cast<int64_t>(n);
      TORCH_CHECK_WITH(OutOfMemoryError, false, "pretend device out of memory. Tried to allocate ", n, " bytes.");
    }
    int64_t most = peak;
    while (now > most && !peak.compare_exchange_weak(most, now)) {
    }
    auto* start = static_cast<char*>(c10::alloc_cpu(n + 64));
    reinterpret_cast<Block*>(start)->size = n;
    return {start + 64, start, &release, at::Device(kDevice, 0)};
  }
  static void release(void* start) {
    if (start == nullptr) return;
    held -= static_cast<int64_t>(static_cast<Block*>(start)->size);
    c10::free_cpu(start);
  }
  at::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t n) const override { std::memcpy(to, from, n); }
};

Allocator allocator;
REGISTER_ALLOCATOR(kDevice, &allocator);

struct Guard final : c10::impl::DeviceGuardImplInterface {
  at::DeviceType type() const override { return kDevice; }
  at::Device exchangeDevice(at::Device device) const override { return device; }
  at::Device getDevice() const override { return at::Device(kDevice, 0); }
  void setDevice(at::Device) const override {}
  void uncheckedSetDevice(at::Device) const noexcept override {}
  c10::Stream getStream(at::Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  at::DeviceIndex deviceCount() const noexcept override { return 1; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
};
const bool registered = [] {
  static Hooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();

c10::DispatchKeySet keys() { return c10::DispatchKeySet(c10::DispatchKey::PrivateUse1); }

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &allocator, keys(), c10::dtype_or_default(dtype),
                                   format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &allocator,
                                           keys(), c10::dtype_or_default(dtype));
}

at::Tensor on_host(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  return at::from_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  c10::impl::ExcludeDispatchKeyGuard guard(c10::autograd_dispatch_keyset);
  on_host(to).copy_(on_host(from));
  return to;
}

void grow(const at::Tensor& tensor, c10::IntArrayRef size) {
  const size_t needed = (c10::multiply_integers(size) + tensor.storage_offset()) * tensor.element_size();
  const size_t present = tensor.storage().nbytes();
  if (present < needed) {
    auto memory = allocator.allocate(needed);
    if (present) std::memcpy(memory.get(), tensor.storage().data(), present);
    tensor.storage().set_data_ptr_noswap(std::move(memory));
    tensor.storage().set_nbytes(needed);
  }
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(size);
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) grow(to, from.sizes());
  return copy_from(from, to, false);
}

const at::Tensor& resize(const at::Tensor& tensor, c10::SymIntArrayRef size, std::optional<at::MemoryFormat>) {
  grow(tensor, C10_AS_INTARRAYREF_SLOW(size));
  return tensor;
}

at::Tensor strided(const at::Tensor& tensor, c10::IntArrayRef size, c10::IntArrayRef stride, int64_t offset) {
  auto result = at::detail::make_tensor<at::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(tensor.storage()),
                                                        tensor.key_set(), tensor.dtype());
  result.unsafeGetTensorImpl()->set_storage_offset(offset);
  result.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return result;
}

at::Tensor as_strided(const at::Tensor& tensor, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  const int64_t start = offset.has_value() ? offset->expect_int() : tensor.storage_offset();
  return strided(tensor, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), start);
}

at::Tensor view(const at::Tensor& tensor, c10::SymIntArrayRef size) {
  const auto shape = at::infer_size(C10_AS_INTARRAYREF_SLOW(size), tensor.numel());
  const auto stride = at::detail::computeStride(tensor.sizes(), tensor.strides(), shape);
  TORCH_CHECK(stride.has_value(), "view size is not compatible with input tensor's size and stride; use reshape");
  return strided(tensor, shape, *stride, tensor.storage_offset());
}

at::Tensor reshape_alias(const at::Tensor& tensor, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return strided(tensor, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), tensor.storage_offset());
}

at::Tensor unfold(const at::Tensor& tensor, int64_t axis, int64_t size, int64_t step) {
  axis = at::maybe_wrap_dim(axis, tensor.dim(), true);
  std::vector<int64_t> sizes(tensor.sizes().vec()), strides(tensor.strides().vec());
  const int64_t most = tensor.dim() == 0 ? 1 : sizes[axis];
  TORCH_CHECK(size <= most, "maximum size for tensor at dimension ", axis, " is ", most, " but size is ", size);
  sizes.push_back(size);
  strides.push_back(tensor.dim() == 0 ? 1 : strides[axis]);
  if (tensor.dim() > 0) {
    sizes[axis] = (sizes[axis] - size) / step + 1;
    strides[axis] *= step;
  }
  return strided(tensor, sizes, strides, tensor.storage_offset());
}

at::Scalar local_scalar(const at::Tensor& tensor) { return on_host(tensor).item(); }

at::Tensor& set_storage(at::Tensor& tensor, at::Storage source, c10::SymInt offset, c10::SymIntArrayRef size,
                        c10::SymIntArrayRef stride) {
  auto* implementation = tensor.unsafeGetTensorImpl();
  implementation->set_storage_keep_dtype(std::move(source));
  implementation->set_storage_offset(offset.expect_int());
  implementation->set_sizes_and_strides(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
  return tensor;
}

void same_device(std::initializer_list<at::Tensor> tensors, const char* name) {
  for (const auto& tensor : tensors)
    TORCH_CHECK(!tensor.defined() || tensor.device().type() == kDevice,
                "Expected all tensors to be on the same device, but ", name, " got one on ", tensor.device());
}

at::Tensor on_device(const at::Tensor& tensor) { return tensor.defined() ? tensor.to(at::Device(kDevice, 0)) : tensor; }

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                       bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  const at::Tensor shift = bias.value_or(at::Tensor());
  same_device({input, weight, shift}, "aten::convolution");
  return on_device(at::convolution_symint(on_host(input), on_host(weight),
                                          shift.defined() ? std::optional<at::Tensor>(on_host(shift)) : std::nullopt,
                                          stride, padding, dilation, transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> mask) {
  same_device({gradient, input, weight}, "aten::convolution_backward");
  const std::vector<c10::SymInt> rows{transposed ? weight.sym_size(1) * groups : weight.sym_size(0)};
  const auto [x, w, b] = at::convolution_backward_symint(on_host(gradient), on_host(input), on_host(weight), rows, stride,
                                                         padding, dilation, transposed, output_padding, groups, mask);
  return {on_device(x), on_device(w), on_device(b)};
}

// Indices may lie on the host, as with CUDA.
bool takes_host_indices(const std::string& name) { return name.rfind("aten::index", 0) == 0 || name.find("aten::_index_put") == 0; }

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ++operations;
  const auto& schema = op.schema();
  const auto arguments = torch::jit::last(*stack, schema.arguments().size());
  bool device = false;
  std::string host;
  const auto look = [&](const at::Tensor& tensor, const std::string& name) {
    if (!tensor.defined()) return;
    if (tensor.device().type() == kDevice) device = true;
    else if (tensor.dim() > 0 && host.empty()) host = name;
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& name = schema.arguments()[i].name();
    if (name == "indices" && takes_host_indices(schema.name())) continue;
    if (arguments[i].isTensor()) look(arguments[i].toTensor(), name);
    if (arguments[i].isTensorList())
      for (const at::Tensor& each : arguments[i].toTensorList()) look(each, name);
    if (arguments[i].isOptionalTensorList())
      for (const std::optional<at::Tensor>& each : arguments[i].toOptionalTensorList())
        if (each.has_value()) look(*each, name);
  }
  TORCH_CHECK(!(device && !host.empty()), "Expected all tensors to be on the same device, but ", schema.name(),
              " got the argument '", host, "' on cpu and another on pretend:0");
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("resize_", resize);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("unfold", unfold);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
  m.impl("_local_scalar_dense", local_scalar);
  m.impl("set_.source_Storage_storage_offset", set_storage);
}

TORCH_LIBRARY(pretend, m) {
  m.def("limit(int bytes) -> ()", [](int64_t bytes) { limit = bytes; });
  m.def("held() -> int", []() -> int64_t { return held; });
  m.def("peak() -> int", []() -> int64_t { return peak.exchange(held); });
  m.def("operations() -> int", []() -> int64_t { return operations; });
}

}  // namespace
