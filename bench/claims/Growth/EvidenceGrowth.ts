/**
 * An institution with ever more Access, versions and requests: a part of a pack of evidence, the list of overdue reviews, and
 * the opening of a campaign over everything overdue. The smallest institution has more than what any of these looks at,
 * so that all sizes cost the same.
 */
import { Effect, Layer } from "effect"
import { InstitutionId, PersonId } from "../../../schemas/BrandedIds.ts"
import { HTTPValidationError } from "../../../schemas/Validation.ts"
import { EvidencePacks } from "../../../services/access/EvidencePacks.ts"
import { OverdueReviews } from "../../../services/access/OverdueReviews.ts"
import { mostLooked, opening } from "../../../services/decisions/Campaigns/OpenCampaign.ts"
import { SigningKeys } from "../../../services/lifecycle/SigningKeys.ts"
import { Roles } from "../../../services/people/Roles.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { runOnce } from "../../../services/platform/database/UnitOfWork.ts"
import { Audit } from "../../../services/platform/observability/Audit.ts"
import { type Area, numbered, platform } from "./Area.ts"

const grown = InstitutionId.make("grown")
const administrator = PersonId.make("grown-administrator")
const publicUrl = new URL("http://127.0.0.1:8080")
const day = 86_400_000

/** One of so many Accesses was granted long ago. */
const oneOverdueOf = 50

const fill = Effect.fnUntraced(function* (rows: number) {
  const { owner } = yield* Database
  const count = Math.max(rows, 2 * mostLooked)
  const [now, recently, longAgo] = [new Date(), new Date(Date.now() - 30 * day), new Date(Date.now() - 400 * day)]
  yield* owner`insert into institutions (id, updated_at, name, status) values (${grown}, ${longAgo}, 'Grown', 'active')`
  yield* owner`
    insert into people (id, updated_at, created_at, issuer, subject, display_name, status)
    select id, ${longAgo}, ${longAgo}, 'https://people.bench.example', id, id, 'active'
    from unnest(${[administrator]}::text[]) id`
  yield* owner`
    insert into institution_memberships (id, updated_at, institution_id, person_id, role, state, accepted_at)
    values ('grown-membership', ${longAgo}, ${grown}, ${administrator}, 'administrator', 'active', ${longAgo})`
  yield* owner`
    insert into access (id, updated_at, created_at, institution_id, project_id, person_id, role, state, access_version)
    select 'access-' || lpad(n::text, 9, '0'), ${now}, ${now}, ${grown}, 'grown-project-' || n % 100, 'grown-holder-' || n % (${count}::int / 20), 'user',
      'active', 1
    from generate_series(1, ${count}::int) n`
  yield* owner`
    insert into access_versions (access_id, access_version, institution_id, project_id, person_id, role, state, digest,
      event_id, created_at)
    select 'access-' || lpad(n::text, 9, '0'), 1, ${grown}, 'grown-project-' || n % 100, 'grown-holder-' || n % (${count}::int / 20), 'user', 'active',
      'sha256:' || repeat('0', 64), ${owner.literal(numbered("n"))},
      case when n % ${oneOverdueOf}::int = 0 then ${longAgo}::timestamptz else ${recently} end
    from generate_series(1, ${count}::int) n`
  yield* owner`
    insert into requests (id, kind, state, author, institution_id, fields, reason, created_at, decided_at)
    select ${
    owner.literal(numbered("n"))
  }, 'membership', 'declined', 'grown-holder-' || n % (${count}::int / 20), ${grown}, '{}', 'as the bench has it',
      ${longAgo}, ${longAgo}
    from generate_series(1, ${count}::int) n`
  yield* owner`vacuum analyze access, access_versions, requests`
})

const services = Layer.mergeAll(
  EvidencePacks.layer(publicUrl).pipe(Layer.provide(SigningKeys.layer)),
  OverdueReviews.layer,
  Roles.layer,
  Audit.layer,
)

const statements: Area["statements"] = (fixture, run, rows) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.provideMerge(services, platform(fixture, run)))
    return yield* Effect.gen(function* () {
      const database = yield* Database
      const { part } = yield* EvidencePacks
      const { list } = yield* OverdueReviews
      const open = yield* opening
      const whole = { personId: administrator, institutionId: grown, person_id: null, review_id: null }
      const packed = (
        more: { readonly since?: string; readonly until?: string; readonly person_id?: PersonId },
        after?: string,
      ) => part({ ...whole, since: null, until: null, after, ...more })
      const nextOf = (text: string): string => JSON.parse(text.trimEnd().split("\n").at(-1)!).next
      const middle = `access-${String(Math.floor(rows / 2)).padStart(9, "0")}`
      // Before all Accesses, or behind all requests: a section is looked through.
      const early = { until: new Date(Date.now() - 500 * day).toISOString() }
      const late = { since: new Date(Date.now() - 10 * day).toISOString() }
      const second = nextOf(yield* packed({}))
      const asked = {
        personId: administrator,
        institutionId: grown,
        name: "Everything",
        reason: "as the bench has it",
        deadline: new Date(Date.now() + day).toISOString(),
        overdue: true,
      }
      return [
        { name: "evidence: the first part of an institution", run: () => packed({}), descents: 1_000 },
        { name: "evidence: a later part", run: () => packed({}, second), descents: 1_000 },
        { name: "evidence: a part of a late span", run: () => packed(late), descents: 1_000 },
        { name: "evidence: a part of a span with nothing in it", run: () => packed(early), descents: 4_000 },
        {
          name: "evidence: a person of whom there is nothing",
          run: () => packed({ person_id: administrator }),
          descents: 20,
        },
        {
          name: "overdue reviews: a page",
          run: () => list(administrator, grown, { limit: 100, afterId: null }),
          descents: 6_000,
        },
        {
          name: "overdue reviews: a page from the middle",
          run: () => list(administrator, grown, { limit: 100, afterId: middle }),
          // Of 2,000 Accesses each one its version, its reviews and its confirmations; of few, they are joined at once.
          descents: 20_000,
        },
        {
          name: "campaign: everything overdue, refused",
          run: () =>
            Effect.flip(Effect.provideService(runOnce(open(asked)), Database, database)).pipe(
              Effect.filterOrFail((refusal) => refusal instanceof HTTPValidationError),
            ),
          descents: 25_000,
        },
      ]
    }).pipe(Effect.provide(context))
  })

export const evidence: Area = { name: "evidence", fill, statements }
