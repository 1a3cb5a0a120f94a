#include "lamella/base/remark.h"

namespace lamella {

namespace {

thread_local RemarkListener* listener_of_thread = nullptr;

}  // namespace

RemarkListener::RemarkListener() : outer_(listener_of_thread) {
  listener_of_thread = this;
}

RemarkListener::~RemarkListener() {
  listener_of_thread = outer_;
}

RemarkPause::RemarkPause() : outer_(listener_of_thread) {
  listener_of_thread = nullptr;
}

RemarkPause::~RemarkPause() {
  listener_of_thread = outer_;
}

void remark(FunctionRef<std::string()> text) {
  if (listener_of_thread == nullptr) return;
  listener_of_thread->remarks_.push_back(text());
}

}  // namespace lamella
