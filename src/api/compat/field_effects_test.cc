// Tests that each field of a vendor's resource does what its table says: alone, with another value
// than its default, it changes what the resource is translated into, or is answered.
#include "api/compat/testing/field_effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using internal::FieldType;
using internal::ResourceField;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Fields with a way of their own that changes a part of what they ask for.
bool ChangesAPart(const ResourceField& field) {
  return field.path == "cdi.enabled" || (field.apply != nullptr && !field.topic->by_effect);
}

void ExpectEffect(const ResourceField& field, const FieldEffect& effect) {
  EXPECT_THAT(effect.places, Not(IsEmpty())) << field.path << " changes nothing";
  for (const FieldAnswer& answer : effect.answers)
    EXPECT_TRUE(answer.fate != FieldFate::kNotServed && answer.fate != FieldFate::kUnknown)
        << field.path << ": " << answer.field << ": " << answer.text;
}

void ExpectAnswer(const ResourceField& field, const FieldEffect& effect) {
  const std::string own = "spec." + field.path;
  ASSERT_EQ(effect.answers.size(), 1u) << field.path;
  const FieldAnswer& answer = effect.answers.front();
  EXPECT_FALSE(answer.text.empty()) << field.path;
  EXPECT_TRUE(ChangesAPart(field) || effect.places.empty()) << field.path;
  if (field.topic->by_effect) {
    EXPECT_TRUE(answer.field == own || answer.field.starts_with(own + "[")) << answer.field;
    return;
  }
  EXPECT_EQ(answer.fate, field.topic->fate) << field.path;
  EXPECT_EQ(answer.field, field.topic->field.empty() ? own : field.topic->field) << field.path;
  if (!field.topic->field.empty() && !effects::IsGate(field)) {
    EXPECT_THAT(answer.text, HasSubstr("Set here: " + field.path + "."));
  }
}

void ExpectWhatTheTableSays(const EffectTable& table) {
  std::size_t values = 0;
  for (const ResourceField& field : table.fields) {
    if (field.type == FieldType::kMap) continue;
    const FieldEffect effect = EffectOf(table, field);
    field.topic == nullptr ? ExpectEffect(field, effect) : ExpectAnswer(field, effect);
    EXPECT_FALSE(field.text.empty() && (field.topic == nullptr || field.topic->text.empty()))
        << field.path;
    values += table.values.contains(field.path);
  }
  EXPECT_EQ(values, table.values.size()) << "a value is of a field that is not in the table";
}

TEST(FieldEffects, EachFieldOfAClusterPolicyTakesEffectOrIsAnswered) {
  ExpectWhatTheTableSays(ClusterPolicyEffects());
}

TEST(FieldEffects, EachFieldOfAnNvidiaDriverTakesEffectOrIsAnswered) {
  ExpectWhatTheTableSays(NvidiaDriverEffects());
}

TEST(FieldEffects, EachFieldOfADeviceConfigTakesEffectOrIsAnswered) {
  ExpectWhatTheTableSays(DeviceConfigEffects());
}

TEST(FieldEffects, WordsThatAreNotServedAreAnswered) {
  std::size_t words = 0;
  for (const EffectTable* table :
       {&ClusterPolicyEffects(), &NvidiaDriverEffects(), &DeviceConfigEffects()})
    for (const ResourceField& field : table->fields) {
      EXPECT_TRUE(field.unserved.empty() || field.topic == nullptr) << field.path;
      for (const std::string_view word : field.unserved) {
        EXPECT_TRUE(std::ranges::find(field.words, word) != field.words.end()) << field.path;
        EffectTable with = *table;
        with.values[field.path] = word;
        EXPECT_THAT(EffectOf(with, field).answers,
                    ElementsAre(FieldAnswer{"spec." + field.path, FieldFate::kNotServed,
                                            std::string(field.unserved_text)}));
        ++words;
      }
    }
  EXPECT_EQ(words, 1u) << "of driverType";
}

TEST(FieldEffects, AFieldThatDoesNothingIsFound) {
  EffectTable table = ClusterPolicyEffects();
  const auto field = std::ranges::find(table.fields, "mig.strategy", &ResourceField::path);
  ASSERT_NE(field, table.fields.end());
  EXPECT_THAT(EffectOf(table, *field).places, ElementsAre("node.parts.profiledStrategy"));
  table.translate = [](const nlohmann::json& spec) {
    nlohmann::json without = spec;
    without.erase("mig");
    return effects::OfClusterPolicy(without);
  };
  const FieldEffect effect = EffectOf(table, *field);
  EXPECT_THAT(effect.places, IsEmpty());
  EXPECT_THAT(effect.answers, IsEmpty());
}

}  // namespace
}  // namespace penstock::api::compat
