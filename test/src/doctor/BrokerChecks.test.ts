import { assert, describe, it } from "@effect/vitest"
import { isOlder } from "../../../src/doctor/BrokerChecks.ts"

describe("broker versions", () => {
  it("are compared number by number", () => {
    for (const old of ["2.9.10", "2.10.26", "2.10.3", "2.10", "1.99.99"]) assert.isTrue(isOlder(old, "2.10.27"), old)
    for (const sound of ["2.10.27", "2.10.27-RC.1", "2.10.100", "2.11.0", "3.0.0"]) {
      assert.isFalse(isOlder(sound, "2.10.27"), sound)
    }
  })
})
