// Virtual calls and a running sum.
#include <cstdio>
#include <memory>
#include <vector>
struct Shape {
  virtual ~Shape() = default;
  virtual long area() const = 0;
};
struct Square : Shape {
  long side;
  explicit Square(long s) : side(s) {}
  long area() const override { return side * side; }
};
static volatile long sum;
__attribute__((noinline)) static void add(const Shape &shape) {
  volatile long area = shape.area();
  sum = sum + area; // line: adds
}
int main() {
  std::vector<std::unique_ptr<Shape>> shapes;
  for (long side = 1; side <= 10; side++) shapes.push_back(std::make_unique<Square>(side));
  for (const auto &shape : shapes) add(*shape);
  std::printf("%ld\n", sum);
}
