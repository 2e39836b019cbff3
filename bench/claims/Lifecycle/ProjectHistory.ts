/**
 * A world with two long histories: one of events that the program itself signed, and one of many active Accesses.
 * Reading it changes nothing that the next round reads.
 */
import { Effect } from "effect"
import type { Run } from "../../harness/Claim.ts"
import { granted, lived, tell } from "../../harness/LifecycleFixture.ts"
import type { Services } from "../../harness/LifecycleServices.ts"
import * as Product from "../../harness/Product.ts"
import type { World } from "../../harness/Servers.ts"
import { settled } from "./Signing.ts"

/** The project whose events are read, and the one whose snapshot is taken. */
export const told = 0
export const standing = 1

/** The issuer in the messages; the program itself listens elsewhere. */
const publicUrl = "http://127.0.0.1:8080"
export const issuer = new URL("/lifecycle", publicUrl).href

export interface ProjectHistory {
  readonly world: World
  readonly events: number
  readonly accesses: number
  readonly services: Services
}

/** The program, configured to serve this history. */
export const serve = (run: Run, { services, world }: Pick<ProjectHistory, "services" | "world">, roles: string) =>
  Product.start(
    run.servers,
    world,
    { ROLES: roles, PUBLIC_URL: publicUrl, LIFECYCLE_ISSUERS: services.issuers },
    run.profile,
  )

/** Writes it: `events` of one project, signed, and `accesses` of another. */
export const history = Effect.fnUntraced(
  function* (run: Run, template: string, services: Services, events: number, accesses: number) {
    const world = yield* run.servers.world(template)
    const database = Product.databaseOf(world)
    yield* run.tell(`a history of ${events} events`)
    yield* tell(events, 100, (n) => lived(told, n)).pipe(Effect.provide(database))
    yield* run.tell(`signing ${events} messages`)
    yield* Effect.gen(function* () {
      const program = yield* serve(run, { services, world }, "lifecycle")
      yield* Effect.raceFirst(settled(world, false), program.ended)
    }).pipe(Effect.scoped)
    yield* world.sql`truncate outbox`
    yield* run.tell(`${accesses} accesses`)
    yield* tell(accesses, 100, (n) => granted(standing, n)).pipe(Effect.provide(database))
    yield* world.sql`vacuum analyze`
    yield* world.sql`checkpoint`
    return { world, events, accesses, services } satisfies ProjectHistory
  },
)
