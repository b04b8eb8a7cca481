// Compares Penstock's declarations with NVIDIA's at compile time: sizes, offsets, values,
// signatures. A difference is a compile error.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace penstock::conformance {

template <typename T, typename = void>
struct IsComplete : std::false_type {};
template <typename T>
struct IsComplete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

// Whether two types are the same to a caller, in a register or behind a pointer. Names, and enum
// versus integer, do not matter.
template <typename A, typename B>
constexpr bool SameType() {
  if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>) {
    if constexpr (!std::is_pointer_v<A> || !std::is_pointer_v<B>) {
      return false;
    } else {
      using X = std::remove_pointer_t<A>;
      using Y = std::remove_pointer_t<B>;
      return std::is_const_v<X> == std::is_const_v<Y> &&
             SameType<std::remove_const_t<X>, std::remove_const_t<Y>>();
    }
  } else if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
    return std::is_void_v<A> && std::is_void_v<B>;
  } else if constexpr (!IsComplete<A>::value || !IsComplete<B>::value) {
    return IsComplete<A>::value == IsComplete<B>::value;  // handles: opaque in both headers
  } else {
    constexpr bool kSameKind = std::is_class_v<A> == std::is_class_v<B> &&
                               std::is_union_v<A> == std::is_union_v<B> &&
                               std::is_floating_point_v<A> == std::is_floating_point_v<B>;
    // A signed integer against an unsigned one is an error; an enum may be either.
    constexpr bool kSameSign = !std::is_integral_v<A> || !std::is_integral_v<B> ||
                               std::is_signed_v<A> == std::is_signed_v<B>;
    return kSameKind && kSameSign && sizeof(A) == sizeof(B) && alignof(A) == alignof(B);
  }
}

template <typename A, typename B>
struct SameSignature : std::false_type {};
template <typename R1, typename... A1, typename R2, typename... A2>
struct SameSignature<R1(A1...), R2(A2...)> {
  static constexpr bool Compare() {
    if constexpr (sizeof...(A1) != sizeof...(A2)) {
      return false;
    } else {
      return SameType<R1, R2>() && (SameType<A1, A2>() && ...);
    }
  }
  static constexpr bool value = Compare();
};

}  // namespace penstock::conformance

// Compare values of constants, sizes of structs, and offset and size of members.
#define SAME_VALUE(ours, theirs) \
  static_assert(static_cast<unsigned long long>(ours) == static_cast<unsigned long long>(theirs))
#define SAME_SIZE(ours, theirs) \
  static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs))
#define SAME_MEMBER(ours, theirs, our_member, their_member)                     \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) && \
                sizeof(ours::our_member) == sizeof(theirs::their_member))
