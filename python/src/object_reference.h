// References to lamella::Object in Python: one Python object per C++ object, whichever side made
// it, and each side keeps the other alive (lamella/base/object.h).
#pragma once

#include <nanobind/nanobind.h>

#include "lamella/base/object.h"

namespace lamella::python {

// Annotates a class bound with nanobind.
template <typename T>
auto shared_object() {
  return nanobind::intrusive_ptr<T>(
      [](T* object, PyObject* self) noexcept { object->hand_over(self); });
}

// Says how counts that Python keeps are changed from any thread.
void install_object_owner();

}  // namespace lamella::python

namespace nanobind::detail {

template <typename T>
  requires std::is_base_of_v<lamella::Object, T>
struct type_caster<lamella::Ref<T>> {
  using Caster = make_caster<T>;
  static constexpr bool IsClass = true;
  NB_TYPE_CASTER(lamella::Ref<T>, Caster::Name)

  bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
    if (source.is_none()) {
      value = nullptr;
      return true;
    }
    Caster caster;
    if (!caster.from_python(source, flags, cleanup)) return false;
    value = lamella::Ref<T>(caster.operator T*());
    return true;
  }
  static handle from_cpp(const lamella::Ref<T>& reference, rv_policy,
                         cleanup_list* cleanup) noexcept {
    if (!reference) return none().release();
    if (void* owner = reference->owner()) return handle(static_cast<PyObject*>(owner)).inc_ref();
    return Caster::from_cpp(reference.get(), rv_policy::take_ownership, cleanup);
  }
};

}  // namespace nanobind::detail
