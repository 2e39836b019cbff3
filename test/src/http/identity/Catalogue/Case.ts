/** One operation, and how to ask it something that it can do. */
import type { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Directory } from "../../../../../services/directory/Directory.ts"
import type { Database } from "../../../../../services/platform/database/Database.ts"
import type { OneShotTokens } from "../../../../../services/platform/security/OneShotTokens.ts"
import type { ProviderJobs } from "../../../../../services/projects/ProviderJobs.ts"
import type { EmbeddedIssuer } from "../../../../../src/embedded/EmbeddedIssuer.ts"
import type { Server } from "../../../../../src/http/Server.ts"
import type { Headers } from "../Ask.ts"
import type { Stage, Who } from "../Stage.ts"

export type World = Database | Directory | EmbeddedIssuer | OneShotTokens | ProviderJobs | Server

export interface Asked {
  /** Of the path. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: Readonly<Record<string, unknown>>
  readonly headers?: Headers
}

export interface Case {
  /** The document's `operationId`. */
  readonly operation: string
  /** Who may, and another who may as well. */
  readonly by: Who
  readonly second: Who
  /** Makes what the request is about, as far as it depends on who sends it for that person. */
  readonly asked: (stage: Stage, personId: string) => Effect.Effect<Asked, SqlError.SqlError, World>
  /** What a good request is answered with. */
  readonly status: number
}

export const reason = "as we agreed on Monday"
