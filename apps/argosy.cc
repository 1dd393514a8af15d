#include <cstdio>
int main() { std::puts("argosy"); }
