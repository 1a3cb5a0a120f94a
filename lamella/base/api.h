// Symbol visibility: everything in liblamella is hidden except what carries LAMELLA_API.
#pragma once

#define LAMELLA_API __attribute__((visibility("default")))
