/**
 * Each test file's own broker: an account on the run's one nats-server, with its own subjects and streams. Accounts are
 * given out once and never again, by making the folder `accounts/N`.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { inject } from "vitest"

const take = () => {
  for (let n = 0; n < inject("natsAccounts"); n++) {
    try {
      mkdirSync(join(inject("runFolder"), "accounts", String(n)))
      return `t${n}`
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    }
  }
  throw new Error("every broker account of this run is given out: raise natsAccounts in GlobalSetup.ts")
}

export class TestBus extends Context.Service<TestBus, {
  /** `nats://USER:PASSWORD@127.0.0.1:PORT` */
  readonly url: Redacted.Redacted
}>()("bailiwick/test/support/TestBus") {
  /** A fresh account. */
  static readonly make = Effect.sync(() => {
    const url = `nats://${take()}:${inject("natsPassword")}@127.0.0.1:${inject("natsPort")}`
    return TestBus.of({ url: Redacted.make(url) })
  })

  static readonly layer = Layer.effect(TestBus, TestBus.make)
}
