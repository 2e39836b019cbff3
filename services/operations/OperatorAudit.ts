/** The audit for people: operators read all of it, auditors the evidence of who may act, other people their own acts. */
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type {
  AuditPage,
  DecisionProofView,
  DecisionsAboutPerson,
  OwnAuditPage,
} from "../../schemas/identity/AuditView.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import type { RoleRequired } from "../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Database } from "../platform/database/Database.ts"
import { millisOf } from "../platform/Ids.ts"
import { AuditLog } from "../platform/observability/AuditLog.ts"
import type { AuditFilter, AuditRecord } from "../platform/observability/AuditRecord.ts"
import { type DecisionProof, DecisionProofs } from "../transparency/DecisionProofs.ts"
import { auditSubject } from "./AuditSubject.ts"
import { decidedAbout } from "./DecidedAbout.ts"
import { auditReader } from "./OperatorRole.ts"

export interface AskedPage {
  readonly limit: number
  readonly afterId: string | undefined
}

const viewOf = (record: AuditRecord) => ({ ...record, at: record.at.toISOString() })

/** A refused request without its details, which name the networks that it came from. */
const auditorsViewOf = (record: AuditRecord) =>
  viewOf(record.action === "request.failed" ? { ...record, details: {} } : record)

/** Without `details`: they may name others who had a part in it. */
const ownViewOf = ({ actor: _, at, details: __, ...record }: AuditRecord) => ({ ...record, at: at.toISOString() })

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64")

const proofViewOf = ({ entry, proved, record, salt }: DecisionProof): DecisionProofView => ({
  record: record === null ? null : viewOf(record),
  salt: base64(salt),
  entry: base64(entry),
  index: proved?.index ?? null,
  proof: proved?.proof ?? null,
})

export class OperatorAudit extends Context.Service<OperatorAudit, {
  /**
   * Records of all accounts and people, newest first; for an auditor those that are evidence of who may act. RoleRequired
   * for a person who is neither an active operator nor an auditor.
   */
  readonly list: (
    personId: PersonId,
    filter: AuditFilter,
    page: AskedPage,
  ) => Effect.Effect<AuditPage, RoleRequired | SqlError.SqlError>
  /**
   * The proof that the decision with this audit record is in the transparency log; RoleRequired for a person
   * who is neither an active operator nor an auditor, NotFound where the log has no such decision.
   */
  readonly prove: (
    personId: PersonId,
    recordId: string,
  ) => Effect.Effect<DecisionProofView, NotFound | RoleRequired | SqlError.SqlError>
  /** The same of a decision that the person made; NotFound for any other record, and one that the audit keeps no more. */
  readonly proveOwn: (
    personId: PersonId,
    recordId: string,
  ) => Effect.Effect<DecisionProofView, NotFound | SqlError.SqlError>
  /**
   * Decisions about the person, newest first, each with the proof that its entry is in the log. Who decided is not told,
   * and the salt stays with those who did: with it, a person could try out who it was.
   */
  readonly aboutPerson: (
    personId: PersonId,
    page: AskedPage,
  ) => Effect.Effect<DecisionsAboutPerson, SqlError.SqlError>
  /** The person's own acts and attempts, newest first. */
  readonly own: (
    personId: PersonId,
    filter: Omit<AuditFilter, "actor">,
    page: AskedPage,
  ) => Effect.Effect<OwnAuditPage, SqlError.SqlError>
}>()("bailiwick/services/operations/OperatorAudit") {
  static readonly layer = Layer.effect(
    OperatorAudit,
    Effect.gen(function* () {
      const mayRead = yield* auditReader
      const log = yield* AuditLog
      const proofs = yield* DecisionProofs
      const { sql } = yield* Database
      const context = yield* Effect.context<Database>()

      const list = Effect.fn("OperatorAudit.list")(
        function* (personId: PersonId, filter: AuditFilter, { afterId, limit }: AskedPage) {
          const auditor = (yield* mayRead(personId)) === "auditor"
          const subject = filter.subject === undefined
            ? undefined
            : yield* Effect.provide(auditSubject(filter.subject), context)
          if (subject === null) return { items: [], next_after_id: null } satisfies AuditPage
          const { nextAfterId, records } = yield* log.newest({ ...filter, subject, evidence: auditor }, limit, afterId)
          return {
            items: records.map(auditor ? auditorsViewOf : viewOf),
            next_after_id: nextAfterId,
          } satisfies AuditPage
        },
      )

      const find = (recordId: string) => isUuid(recordId) ? proofs.of(recordId) : Effect.succeed(null)
      const unknown = (whose: string) =>
        new NotFound({ detail: `The transparency log has no decision ${whose}with this audit record` })

      const prove = Effect.fn("OperatorAudit.prove")(function* (personId: PersonId, recordId: string) {
        yield* mayRead(personId)
        const found = yield* find(recordId)
        return found === null ? yield* unknown("") : proofViewOf(found)
      })

      const proveOwn = Effect.fn("OperatorAudit.proveOwn")(function* (personId: PersonId, recordId: string) {
        const found = yield* find(recordId)
        return found?.record?.actor === `person:${personId}` ? proofViewOf(found) : yield* unknown("of yours ")
      })

      const aboutPerson = Effect.fn("OperatorAudit.aboutPerson")(
        function* (personId: PersonId, { afterId, limit }: AskedPage) {
          const before = afterId === undefined ? null : millisOf(afterId)
          const found = yield* proofs.newest(yield* decidedAbout(sql, personId, before), limit, afterId ?? null)
          return {
            items: found.map(({ entry, proved, record: { action, at, id, subject } }) => ({
              record_id: id,
              at: at.toISOString(),
              action,
              subject: subject!,
              entry: base64(entry),
              index: proved?.index ?? null,
              proof: proved?.proof ?? null,
            })),
            next_after_id: found.length < limit ? null : found.at(-1)?.record.id ?? null,
          } satisfies DecisionsAboutPerson
        },
      )

      const own = Effect.fn("OperatorAudit.own")(
        function* (personId: PersonId, filter: Omit<AuditFilter, "actor">, { afterId, limit }: AskedPage) {
          const actor = `person:${personId}`
          const { nextAfterId, records } = yield* log.newest({ ...filter, actor }, limit, afterId)
          return { items: records.map(ownViewOf), next_after_id: nextAfterId } satisfies OwnAuditPage
        },
      )

      return OperatorAudit.of({ aboutPerson, list, own, prove, proveOwn })
    }),
  ).pipe(Layer.provide(DecisionProofs.layer))
}
