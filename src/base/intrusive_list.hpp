// intrusive_list is a doubly linked FIFO whose links live in the elements: no allocation, and an
// element leaves from the middle in constant time.
//
// Invariants
//   1. An element stands in at most one list per link base: next_ is null exactly when it stands in
//      none. Double insert and double erase are asserted.
//   2. The list owns nothing; an element outlives its membership.
// Threads: none of its own; whoever protects the list protects the links of its elements.
// An element that must stand in two lists at once derives from two link types, each derived from
// list_link, and names them: intrusive_list<waiter, timer_link>.
#pragma once

#include <type_traits>

#include "base/assert.hpp"

namespace smarm::detail {

template <class T, class Link>
class intrusive_list;

// list_link is the base that makes a type an element. Copying an element does not copy its place.
struct list_link {
  list_link() noexcept = default;
  list_link(const list_link&) noexcept {}
  list_link& operator=(const list_link&) noexcept { return *this; }

  [[nodiscard]] bool is_linked() const noexcept { return next_ != nullptr; }

 private:
  template <class T, class Link>
  friend class intrusive_list;

  list_link* next_ = nullptr;
  list_link* previous_ = nullptr;
};

template <class T, class Link = list_link>
class intrusive_list {
 public:
  intrusive_list() noexcept {
    head_.next_ = &head_;
    head_.previous_ = &head_;
  }
  intrusive_list(const intrusive_list&) = delete;
  intrusive_list& operator=(const intrusive_list&) = delete;

  [[nodiscard]] bool empty() const noexcept { return head_.next_ == &head_; }

  // is_linked says whether the element stands in some list of this link type.
  [[nodiscard]] static bool is_linked(const T& element) noexcept {
    return static_cast<const Link&>(element).is_linked();
  }

  // front returns the first element, or null when the list is empty.
  [[nodiscard]] T* front() noexcept { return empty() ? nullptr : element_of(head_.next_); }

  // back returns the last element, or null when the list is empty.
  [[nodiscard]] T* back() noexcept { return empty() ? nullptr : element_of(head_.previous_); }

  // next returns the element behind `element`, or null at the end. For walks; the caller reads it
  // before it erases `element`.
  [[nodiscard]] T* next(T& element) noexcept {
    list_link* const link = static_cast<Link&>(element).next_;
    return link == &head_ ? nullptr : element_of(link);
  }

  void push_back(T& element) noexcept { insert_between(*head_.previous_, element, head_); }
  void push_front(T& element) noexcept { insert_between(head_, element, *head_.next_); }

  // pop_front takes the first element out and returns it, or null when the list is empty.
  [[nodiscard]] T* pop_front() noexcept {
    T* const first = front();
    if (first != nullptr) {
      erase(*first);
    }
    return first;
  }

  // erase takes the element out. Precondition: it stands in this list.
  void erase(T& element) noexcept {
    list_link& link = static_cast<Link&>(element);
    SMARM_ASSERT(link.is_linked(), "an element is erased from a list that it stands in", &element);
    SMARM_ASSERT_DEBUG(link.next_->previous_ == &link && link.previous_->next_ == &link,
                       "the neighbours of a listed element point back at it", &element);
    link.previous_->next_ = link.next_;
    link.next_->previous_ = link.previous_;
    link.next_ = nullptr;
    link.previous_ = nullptr;
  }

 private:
  [[nodiscard]] static T* element_of(list_link* link) noexcept {
    static_assert(std::is_base_of_v<Link, T> && std::is_base_of_v<list_link, Link>);
    return static_cast<T*>(static_cast<Link*>(link));
  }

  void insert_between(list_link& before, T& element, list_link& after) noexcept {
    list_link& link = static_cast<Link&>(element);
    SMARM_ASSERT(!link.is_linked(), "an element stands in one list at a time", &element);
    link.previous_ = &before;
    link.next_ = &after;
    before.next_ = &link;
    after.previous_ = &link;
  }

  list_link head_;
};

}  // namespace smarm::detail
