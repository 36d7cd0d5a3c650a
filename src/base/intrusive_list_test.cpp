// Goal: FIFO order, removal from the middle, and a stop at each misuse of a link.
#include "base/intrusive_list.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace smarm::detail {
namespace {

struct first_link : list_link {};
struct other_link : list_link {};

// Stands in a list by its second link, so that the way from a link to its element is not trivial.
struct node : first_link, other_link {
  explicit node(int number) : value(number) {}
  int value;
};

struct simple : list_link {
  int value = 0;
};

using node_list = intrusive_list<node, other_link>;

std::vector<int> values_of(node_list& list) {
  std::vector<int> values;
  for (node* at = list.front(); at != nullptr; at = list.next(*at)) {
    values.push_back(at->value);
  }
  return values;
}

TEST(intrusive_list, gives_elements_back_in_the_order_they_came) {
  node_list list;
  node one(1), two(2), three(3);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.back(), nullptr);
  EXPECT_EQ(list.pop_front(), nullptr);
  list.push_back(two);
  list.push_back(three);
  list.push_front(one);
  EXPECT_EQ(values_of(list), (std::vector{1, 2, 3}));
  EXPECT_EQ(list.back(), &three);
  EXPECT_EQ(list.pop_front(), &one);
  EXPECT_FALSE(node_list::is_linked(one));
  EXPECT_TRUE(node_list::is_linked(two));
  EXPECT_EQ(list.pop_front(), &two);
  EXPECT_EQ(list.pop_front(), &three);
  EXPECT_TRUE(list.empty());
}

TEST(intrusive_list, lets_an_element_leave_from_anywhere_and_come_back) {
  node_list list;
  node one(1), two(2), three(3);
  list.push_back(one);
  list.push_back(two);
  list.push_back(three);
  list.erase(two);
  EXPECT_EQ(values_of(list), (std::vector{1, 3}));
  list.push_back(two);
  list.erase(one);
  EXPECT_EQ(values_of(list), (std::vector{3, 2}));
}

TEST(intrusive_list, holds_an_element_in_two_lists_by_two_links) {
  intrusive_list<node, first_link> one_list;
  node_list other_list;
  node element(1);
  one_list.push_back(element);
  other_list.push_back(element);
  EXPECT_EQ(one_list.pop_front(), &element);
  EXPECT_EQ(other_list.pop_front(), &element);
}

TEST(intrusive_list, refuses_an_element_that_stands_in_a_list_already) {
  intrusive_list<simple> list;
  intrusive_list<simple> another;
  simple element;
  list.push_back(element);
  EXPECT_DEATH(another.push_back(element), "an element stands in one list at a time");
}

TEST(intrusive_list, refuses_to_erase_what_stands_in_no_list) {
  intrusive_list<simple> list;
  simple element;
  list.push_back(element);
  list.erase(element);
  EXPECT_DEATH(list.erase(element), "erased from a list that it stands in");
}

TEST(intrusive_list, does_not_copy_a_place_along_with_an_element) {
  intrusive_list<simple> list;
  simple element;
  list.push_back(element);
  const simple copy = element;
  EXPECT_FALSE(copy.is_linked());
  EXPECT_TRUE(element.is_linked());
}

}  // namespace
}  // namespace smarm::detail
