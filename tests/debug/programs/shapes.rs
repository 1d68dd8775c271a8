// Trait objects and a running sum.
trait Shape {
    fn area(&self) -> i64;
}
struct Square(i64);
impl Shape for Square {
    fn area(&self) -> i64 {
        self.0 * self.0
    }
}
#[inline(never)]
fn add(shape: &dyn Shape, sum: &mut i64) {
    let area = shape.area();
    *sum += area; // line: adds
}
fn main() {
    let shapes: Vec<Box<dyn Shape>> = (1..=10).map(|side| Box::new(Square(side)) as Box<dyn Shape>).collect();
    let mut sum = 0;
    for shape in &shapes {
        add(shape.as_ref(), &mut sum);
    }
    println!("{}", sum);
}
