import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { eventTypes } from "../../../schemas/mail/MailEvent.ts"
import {
  transition,
  type WebhookCommand,
  type WebhookState,
} from "../../../services/webhooks/Webhooks/WebhookTransition.ts"

const url = fc.constantFrom("https://a.example/", "https://b.example/hook")
const events = fc.array(fc.constantFrom(...eventTypes), { minLength: 1, maxLength: 10 })
const description = fc.constantFrom("", "Orders", "Bounces")
const headers = fc.uniqueArray(fc.constantFrom("X-Tenant", "X-Team"), { maxLength: 2 })
  .map((names) => names.map((name) => ({ name, value: "v" })))
const basicAuth = fc.constantFrom({ username: "", password: "" }, { username: "hook", password: "p" })
const rateLimit = fc.constantFrom(0, 1, 50)
const state = fc.record({
  url,
  description: description.map((text) => text || null),
  events: events.map((all) => [...new Set(all)]),
  isActive: fc.boolean(),
  headerNames: headers.map((all) => all.map(({ name }) => name)),
  basicAuth: fc.boolean(),
  honorRetryAfter: fc.boolean(),
  rateLimit: rateLimit.map((n) => n || null),
})
const settings = { url, description, events, isActive: fc.boolean(), honorRetryAfter: fc.boolean(), rateLimit }
const update = fc.record({ ...settings, headers, basicAuth }, { requiredKeys: [] })
  .map((change): WebhookCommand => ({ _tag: "Update", ...change }))
const command = fc.oneof(
  update,
  fc.constantFrom<WebhookCommand>({ _tag: "Rotate" }, { _tag: "Delete" }),
)

describe("transition", () => {
  it("an update has exactly the events of its changes", () => {
    fc.assert(fc.property(state, update, (before, change) => {
      if (change._tag !== "Update") return
      const { state: after, events } = transition(before, change)
      const rewritten = [before, after].some(({ basicAuth, headerNames }) =>
        (change.headers !== undefined && headerNames.length > 0) || (change.basicAuth !== undefined && basicAuth)
      )
      const edited = rewritten || after.url !== before.url || after.events.join() !== before.events.join() ||
        after.description !== before.description || after.honorRetryAfter !== before.honorRetryAfter ||
        after.rateLimit !== before.rateLimit
      assert.strictEqual(events.includes("updated"), edited)
      assert.strictEqual(events.includes("paused"), before.isActive && !after.isActive)
      assert.strictEqual(events.includes("resumed"), !before.isActive && after.isActive)
      assert.isFalse(events.includes("deleted") || events.includes("secret-rotated"))
    }))
  })

  it("an update sets the named members and keeps the others", () => {
    fc.assert(fc.property(state, update, (before, change) => {
      if (change._tag !== "Update") return
      const { state: after } = transition(before, change)
      assert.strictEqual(after.url, change.url ?? before.url)
      assert.strictEqual(after.isActive, change.isActive ?? before.isActive)
      assert.strictEqual(after.honorRetryAfter, change.honorRetryAfter ?? before.honorRetryAfter)
      assert.strictEqual(after.rateLimit, (change.rateLimit ?? before.rateLimit) || null)
      assert.strictEqual(
        after.description,
        change.description === undefined ? before.description : change.description || null,
      )
      assert.deepStrictEqual(after.events, [...new Set(change.events ?? before.events)])
      assert.deepStrictEqual(after.headerNames, change.headers?.map(({ name }) => name) ?? before.headerNames)
      assert.strictEqual(after.basicAuth, (change.basicAuth?.username ?? (before.basicAuth ? "hook" : "")) === "hook")
    }))
  })

  it("the same update a second time changes nothing, unless it gives values that no answer shows", () => {
    const visible = fc.record(settings, { requiredKeys: [] })
      .map((change): WebhookCommand => ({ _tag: "Update", ...change }))
    fc.assert(fc.property(state, visible, (before, change) => {
      const once = transition(before, change)
      assert.deepStrictEqual(transition(once.state, change), { state: once.state, events: [] })
    }))
  })

  it("never repeats an event type, and a deleted webhook is never active", () => {
    fc.assert(fc.property(state, fc.array(command, { maxLength: 8 }), (start, commands) => {
      let current: WebhookState = start
      for (const one of commands) {
        const next = transition(current, one)
        assert.strictEqual(new Set(next.state.events).size, next.state.events.length)
        if (one._tag === "Delete") assert.isFalse(next.state.isActive)
        current = next.state
      }
    }))
  })
})
