import { assert, describe, it } from "@effect/vitest"
import { Context, Option, Tracer } from "effect"
import { randomBytes } from "node:crypto"
import { sampled, type SamplerName } from "../../src/TraceSampler.ts"

const plain = Tracer.make({ span: (options) => new Tracer.NativeSpan(options) })

const begin = (name: SamplerName, ratio: number, parent: Tracer.AnySpan | null = null, wanted = true) =>
  sampled(plain, name, ratio).span({
    name: "span",
    parent: Option.fromNullishOr(parent),
    annotations: Context.empty(),
    links: [],
    startTime: 0n,
    kind: "internal",
    root: false,
    // As Effect decides before it asks the tracer.
    sampled: wanted && parent?.sampled !== false,
  })

const remote = (isSampled: boolean, traceId = randomBytes(16).toString("hex")) =>
  Tracer.externalSpan({ traceId, spanId: "1".repeat(16), sampled: isSampled })

describe("a sampler of traces", () => {
  it("keeps the share of traces that its ratio says, and the same ones everywhere", () => {
    const kept = Array.from({ length: 4_000 }, () => begin("traceidratio", 0.25)).filter((span) => span.sampled)
    assert.isAbove(kept.length, 800)
    assert.isBelow(kept.length, 1_200)
    for (const { traceId } of kept) assert.isTrue(begin("traceidratio", 0.25, remote(false, traceId)).sampled)
    assert.isTrue(begin("traceidratio", 0.25, remote(true, "0".repeat(18) + "f".repeat(14))).sampled)
    assert.isFalse(begin("traceidratio", 0.25, remote(true, "f".repeat(18) + "0".repeat(14))).sampled)
  })

  it("follows a caller's decision only where it is parent-based, and a span of this program always", () => {
    for (const isSampled of [true, false]) {
      assert.isTrue(begin("always_on", 1, remote(isSampled)).sampled)
      assert.isFalse(begin("always_off", 1, remote(isSampled)).sampled)
      for (const name of ["parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"] as const) {
        assert.strictEqual(begin(name, 0.5, remote(isSampled)).sampled, isSampled, name)
      }
    }
    const local = begin("always_on", 1)
    assert.isTrue(begin("always_off", 1, local).sampled)
    assert.isFalse(begin("always_on", 1, begin("always_off", 1)).sampled)
  })

  it("leaves a span unsampled that the program does not want", () => {
    assert.isFalse(begin("always_on", 1, null, false).sampled)
  })
})
