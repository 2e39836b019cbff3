import { assert, describe, it } from "@effect/vitest"
import { isOlder, replicasFound } from "../../../src/doctor/BrokerChecks.ts"

describe("broker versions", () => {
  it("one replica that is not synced is warned of, with what a power failure would lose", () => {
    assert.strictEqual(replicasFound(3, "2.9.10").level, "ok")
    assert.strictEqual(replicasFound(1, "2.10.27").level, "ok")
    const { level, notes: [found] } = replicasFound(1, "2.9.10")
    assert.strictEqual(level, "warn")
    assert.match(found!.says, /^one server keeps each stream and cannot sync each message: a power failure loses/)
    assert.strictEqual(found!.remedy, "three servers and NATS_REPLICAS=3, or 2.10 or newer")
  })

  it("are compared number by number", () => {
    for (const old of ["2.9.10", "2.10.26", "2.10.3", "2.10", "1.99.99"]) assert.isTrue(isOlder(old, "2.10.27"), old)
    for (const sound of ["2.10.27", "2.10.27-RC.1", "2.10.100", "2.11.0", "3.0.0"]) {
      assert.isFalse(isOlder(sound, "2.10.27"), sound)
    }
  })
})
