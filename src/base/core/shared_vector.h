// A vector whose copies share their elements.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace penstock::base {

/// For successive snapshots of many elements of which few change: a copy copies pointers. Elements
/// are immutable but for those that one vector has of its own (Edit). Not thread-safe; copies in
/// different threads are independent.
template <typename T>
class SharedVector {
  using Elements = std::vector<std::shared_ptr<const T>>;

 public:
  class const_iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;

    const_iterator() = default;
    explicit const_iterator(typename Elements::const_iterator at) : at_(at) {}
    /// The element as it is kept: the same pointer in two vectors means the same element.
    const std::shared_ptr<const T>& shared() const { return *at_; }
    reference operator*() const { return **at_; }
    pointer operator->() const { return at_->get(); }
    reference operator[](difference_type n) const { return *at_[n]; }
    const_iterator& operator++() { return ++at_, *this; }
    const_iterator& operator--() { return --at_, *this; }
    const_iterator operator++(int) { return const_iterator(at_++); }
    const_iterator operator--(int) { return const_iterator(at_--); }
    const_iterator& operator+=(difference_type n) { return at_ += n, *this; }
    const_iterator& operator-=(difference_type n) { return at_ -= n, *this; }
    friend const_iterator operator+(const_iterator i, difference_type n) { return i += n; }
    friend const_iterator operator+(difference_type n, const_iterator i) { return i += n; }
    friend const_iterator operator-(const_iterator i, difference_type n) { return i -= n; }
    friend difference_type operator-(const_iterator a, const_iterator b) { return a.at_ - b.at_; }
    auto operator<=>(const const_iterator&) const = default;

   private:
    friend class SharedVector;
    typename Elements::const_iterator at_;
  };
  using iterator = const_iterator;
  using value_type = T;
  using const_reference = const T&;
  using reference = const T&;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;

  SharedVector() = default;
  SharedVector(std::initializer_list<T> elements) {
    for (const T& element : elements) push_back(element);
  }
  SharedVector(std::vector<T> elements) {
    for (T& element : elements) push_back(std::move(element));
  }

  const_iterator begin() const { return const_iterator(elements_.begin()); }
  const_iterator end() const { return const_iterator(elements_.end()); }
  std::size_t size() const { return elements_.size(); }
  bool empty() const { return elements_.empty(); }
  const T& operator[](std::size_t index) const { return *elements_[index]; }
  const T& at(std::size_t index) const { return *elements_.at(index); }
  const T& front() const { return *elements_.front(); }
  const T& back() const { return *elements_.back(); }

  void push_back(T element) { elements_.push_back(std::make_shared<const T>(std::move(element))); }
  void insert(const_iterator before, T element) {
    elements_.insert(before.at_, std::make_shared<const T>(std::move(element)));
  }
  void erase(const_iterator at) { elements_.erase(at.at_); }
  void pop_back() { elements_.pop_back(); }
  void clear() { elements_.clear(); }
  void Replace(const_iterator at, T element) {
    elements_[static_cast<std::size_t>(at - begin())] =
        std::make_shared<const T>(std::move(element));
  }
  template <typename Predicate>
  void EraseIf(Predicate predicate) {
    std::erase_if(elements_, [&predicate](const auto& element) { return predicate(*element); });
  }
  /// Replaces an element by a copy that no other vector has, to be changed through the result until
  /// this vector is copied.
  T& Edit(std::size_t index) {
    auto own = std::make_shared<T>(*elements_[index]);
    elements_[index] = own;
    return *own;
  }

  /// Elements that both share are equal without a look at them.
  bool operator==(const SharedVector& other) const {
    return std::ranges::equal(elements_, other.elements_,
                              [](const auto& a, const auto& b) { return a == b || *a == *b; });
  }
  bool operator==(const std::vector<T>& other) const { return std::ranges::equal(*this, other); }

 private:
  Elements elements_;
};

}  // namespace penstock::base
