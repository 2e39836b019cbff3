import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { AccountId, DomainId, TransferId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import { isLive, TransferStatus } from "../../../schemas/mail/Transfer.ts"
import type { TransferCommand } from "../../../services/transfers/Transfers/TransferCommands.ts"
import { isDue, timersOf, type TransferState, viewOf } from "../../../services/transfers/Transfers/TransferState.ts"
import { transition } from "../../../services/transfers/Transfers/TransferTransition.ts"
import { runs } from "../../support/Runs.ts"

const [owner, bob, eve] = [AccountId.make("owner"), AccountId.make("bob"), AccountId.make("eve")]
const start = 1_000_000
const window = 7_000
const safety = 1_000

const pending: TransferState = {
  id: TransferId.make("t"),
  domainId: DomainId.make("d"),
  domainName: "d.example",
  sourceUserId: owner,
  sourceOrgId: WorkspaceId.make("w0"),
  sourceLabel: "Owner",
  initiatedBy: owner,
  targetUserId: bob,
  targetEmail: "bob@example.com",
  targetOrgId: null,
  status: "pending",
  note: null,
  rotateDkim: false,
  forced: false,
  initiatedAt: start,
  expiresAt: start + window,
  acceptedAt: null,
  cooloffUntil: null,
  completedAt: null,
  acceptUsed: false,
  stopUsed: false,
}

const unchanged = {
  id: pending.domainId,
  name: "d.example",
  accountId: owner,
  workspaceId: pending.sourceOrgId,
  verified: true,
}
const domain = fc.constantFrom(unchanged, unchanged, unchanged, null, { ...unchanged, accountId: eve }, {
  ...unchanged,
  verified: false,
})
const workspaces = fc.subarray(["w1", "w2", "w3"].map((id) => WorkspaceId.make(id)))
const caller = fc.constantFrom(
  { id: bob, email: "BOB@example.com" },
  { id: bob, email: "bob@example.com" },
  { id: bob, email: "other@example.com" },
  { id: eve, email: "bob@example.com" },
)
const party = fc.constantFrom("recipient", "source", "onlooker", "stranger")
const command: fc.Arbitrary<TransferCommand> = fc.oneof(
  fc.record({
    _tag: fc.constant("Accept"),
    byToken: fc.boolean(),
    caller,
    orgId: fc.constantFrom(null, null, ...["w1", "W2", "elsewhere"].map((id) => WorkspaceId.make(id))),
    rotateDkim: fc.boolean(),
    workspaces,
    room: fc.boolean(),
    domain,
    safetyWindow: fc.constant(safety),
  }),
  fc.record({ _tag: fc.constant("Tick"), domain, recipientActive: fc.boolean(), workspaces }),
  fc.record({ _tag: fc.constantFrom("Decline", "Cancel"), party }),
  fc.constantFrom({ _tag: "Stop" } as const),
  fc.record({ _tag: fc.constant("End"), by: fc.constantFrom("force", "directory") }),
  fc.record({ _tag: fc.constant("Extend"), until: fc.integer({ min: start, max: start + 20_000 }) }),
) as fc.Arbitrary<TransferCommand>

/** Commands with the time that passes before each: often none, sometimes up to a boundary or past it. */
const steps = fc.array(
  fc.tuple(command, fc.constantFrom(0, 0, 1, safety - 1, safety, safety + 1, window - 1, window, window + 1)),
  { maxLength: 12 },
)

interface Step {
  readonly before: TransferState
  readonly command: TransferCommand
  readonly now: number
  readonly result: ReturnType<typeof transition>
  readonly after: TransferState
}

const walk = (commands: ReadonlyArray<readonly [TransferCommand, number]>): ReadonlyArray<Step> => {
  let state = pending
  let now = start
  return commands.map(([command, gap]) => {
    now += gap
    const before = state
    const result = transition(before, command, now)
    state = Result.isSuccess(result) ? result.success.state : before
    return { before, command, now, result, after: state }
  })
}

const always = (holds: (step: Step) => void) =>
  fc.assert(fc.property(steps, (commands) => walk(commands).forEach(holds)), { numRuns: runs(1_000) })

const allowed: Readonly<Record<TransferStatus, ReadonlyArray<TransferStatus>>> = {
  pending: ["pending", "accepted", "declined", "cancelled", "expired"],
  accepted: ["accepted", "reversed", "completed"],
  completed: ["completed"],
  declined: ["declined"],
  cancelled: ["cancelled"],
  reversed: ["reversed"],
  expired: ["expired"],
}

describe("transition", () => {
  it("moves only along the table, and never out of a terminal state", () => {
    always(({ after, before }) => {
      assert.include(allowed[before.status], after.status)
      if (!isLive(before.status)) assert.deepStrictEqual(after, before)
    })
  })

  it("a change has exactly one event, no change has none", () => {
    always(({ before, result }) => {
      if (Result.isFailure(result)) return
      const { events, state } = result.success
      assert.strictEqual(events.length, state === before ? 0 : 1)
    })
  })

  it("accepts only the recipient under the same address, in time, with room, into one of their workspaces", () => {
    always(({ after, before, command, now }) => {
      if (before.status !== "pending" || after.status !== "accepted" || command._tag !== "Accept") return
      assert.strictEqual(command.caller.id, bob)
      assert.notInclude(command.caller.email, "other")
      assert.isTrue(command.room && now < before.expiresAt)
      assert.include(command.workspaces, after.targetOrgId)
      assert.strictEqual(after.targetOrgId, command.orgId?.toLowerCase() ?? command.workspaces[0])
      assert.deepStrictEqual([after.acceptedAt, after.cooloffUntil], [now, now + safety])
    })
  })

  it("stops only within the safety window and completes only from its end on", () => {
    always(({ after, before, command, now }) => {
      if (command._tag === "Stop" && after.status !== before.status) assert.isBelow(now, before.cooloffUntil!)
      if (after.status === "completed" && before.status !== "completed") {
        assert.strictEqual(command._tag, "Tick")
        assert.isAtLeast(now, before.cooloffUntil!)
        assert.deepStrictEqual([after.completedAt, after.cooloffUntil], [now, null])
      }
    })
  })

  it("each token works once", () => {
    fc.assert(fc.property(steps, (commands) => {
      const taken = walk(commands).filter(({ command, before, after }) =>
        before !== after && (command._tag === "Stop" || command._tag === "Accept" && after.status === "accepted")
      ).map(({ command }) => command._tag)
      assert.strictEqual(new Set(taken).size, taken.length)
    }))
    always(({ before, command, result }) => {
      if (
        command._tag === "Accept" && command.byToken && before.acceptUsed || command._tag === "Stop" && before.stopUsed
      ) {
        assert.strictEqual(Result.isFailure(result) && result.failure.code, "not_found")
      }
    })
  })

  it("a live state has exactly one timer, at the time of its due transition; other states have none", () => {
    always(({ after, now }) => {
      const timers = timersOf(after)
      assert.strictEqual(timers.length, isLive(after.status) ? 1 : 0)
      for (const { dueAt } of timers) {
        const tick = {
          _tag: "Tick",
          domain: unchanged,
          recipientActive: true,
          workspaces: [WorkspaceId.make("w1")],
        } as const
        assert.isEmpty(Result.getOrThrow(transition(after, tick, dueAt - 1)).events)
        assert.isNotEmpty(Result.getOrThrow(transition(after, tick, Math.max(dueAt, now))).events)
      }
    })
  })

  it("a pending transfer past its time is shown as expired, and commands treat it as expired", () => {
    always(({ before, command, now, result }) => {
      if (before.status !== "pending" || !isDue(before, now)) return
      assert.strictEqual(viewOf(before, now).status, "expired")
      if (command._tag === "Decline" && command.party === "recipient") {
        assert.strictEqual(Result.isFailure(result) && result.failure.code, "not_pending")
      }
      if (command._tag === "Accept" && command.caller.id === bob && !command.caller.email.startsWith("other")) {
        assert.strictEqual(Result.isFailure(result) && result.failure.code, "expired")
      }
    })
  })

  it("never moves a domain that the source no longer owns or that is unverified", () => {
    always(({ after, before, command }) => {
      if (!("domain" in command) || command.domain === unchanged || after.status === before.status) return
      assert.include(["cancelled", "reversed", "expired"], after.status)
    })
  })

  it("the same command again changes nothing more", () => {
    always(({ after, command, now }) => {
      const again = transition(after, command, now)
      if (Result.isSuccess(again)) assert.isEmpty(again.success.events)
    })
  })
})
