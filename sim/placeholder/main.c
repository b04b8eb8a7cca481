/* Placeholder for a driver's program that a simulated driver does not need: says so and fails. */
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  const char* name = count > 0 ? arguments[0] : "program";
  const char* slash = strrchr(name, '/');
  fprintf(stderr, "%s: this program does nothing with a simulated driver\n",
          slash ? slash + 1 : name);
  return 1;
}
