/**
 * A fixture with two long histories: one of events that the program itself signed, and one of many active Accesses.
 * Reading it changes nothing that the next round reads.
 */
import { Effect } from "effect"
import type { Run } from "../../harness/Claim.ts"
import { granted, lived, tell } from "../../harness/LifecycleSeed.ts"
import type { Services } from "../../harness/LifecycleServices.ts"
import * as Product from "../../harness/Product.ts"
import type { Fixture } from "../../harness/Servers.ts"
import { settled } from "./Signing.ts"

/** The project whose events are read, and the one whose snapshot is taken. */
export const told = 0
export const standing = 1

/** The issuer in the messages; the program itself listens elsewhere. */
const publicUrl = "http://127.0.0.1:8080"
export const issuer = new URL("/lifecycle", publicUrl).href

export interface ProjectHistory {
  readonly fixture: Fixture
  readonly events: number
  readonly accesses: number
  readonly services: Services
}

/** The program, configured to serve this history. */
export const serve = (run: Run, { services, fixture }: Pick<ProjectHistory, "services" | "fixture">, roles: string) =>
  Product.start(
    run.servers,
    fixture,
    { ROLES: roles, PUBLIC_URL: publicUrl, LIFECYCLE_ISSUERS: services.issuers },
    run.profile,
  )

/** Writes it: `events` of one project, signed, and `accesses` of another. */
export const history = Effect.fnUntraced(
  function* (run: Run, template: string, services: Services, events: number, accesses: number) {
    const fixture = yield* run.servers.fixture(template)
    const database = Product.databaseOf(fixture)
    yield* run.tell(`a history of ${events} events`)
    yield* tell(events, 100, (n) => lived(told, n)).pipe(Effect.provide(database))
    yield* run.tell(`signing ${events} messages`)
    yield* Effect.gen(function* () {
      const program = yield* serve(run, { services, fixture }, "lifecycle")
      yield* Effect.raceFirst(settled(fixture, false), program.ended)
    }).pipe(Effect.scoped)
    yield* fixture.sql`truncate outbox`
    yield* run.tell(`${accesses} accesses`)
    yield* tell(accesses, 100, (n) => granted(standing, n)).pipe(Effect.provide(database))
    yield* fixture.sql`vacuum analyze`
    yield* fixture.sql`checkpoint`
    return { fixture, events, accesses, services } satisfies ProjectHistory
  },
)
