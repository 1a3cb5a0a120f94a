// What code throws, for tests.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "lamella/base/error.h"

namespace lamella {

// The error that `body` throws; a test failure if it throws none.
template <typename Body>
Error error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::Internal, "");
}

// Its text, without the place in the program.
template <typename Body>
std::string message_of(Body&& body) {
  return error_of(body).message();
}

}  // namespace lamella
