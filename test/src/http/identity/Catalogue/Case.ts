/** One operation, and how to make a valid request of it. */
import type { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Directory } from "../../../../../services/directory/Directory.ts"
import type { Database } from "../../../../../services/platform/database/Database.ts"
import type { Audit } from "../../../../../services/platform/observability/Audit.ts"
import type { OneTimeTokens } from "../../../../../services/platform/security/OneTimeTokens.ts"
import type { ProviderJobs } from "../../../../../services/projects/ProviderJobs.ts"
import type { EmbeddedIssuer } from "../../../../../src/embedded/EmbeddedIssuer.ts"
import type { Server } from "../../../../../src/http/Server.ts"
import type { Headers } from "../IdentityClient.ts"
import type { IdentityStage, Who } from "../IdentityStage.ts"

export type Fixture = Audit | Database | Directory | EmbeddedIssuer | OneTimeTokens | ProviderJobs | Server

export interface Asked {
  /** Parameters of the path. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: Readonly<Record<string, unknown>>
  readonly headers?: Headers
}

export interface Case {
  /** The document's `operationId`. */
  readonly operation: string
  /** A role that may, and another one that may as well. */
  readonly by: Who
  readonly second: Who
  /** Makes the objects of the request, for the person who sends it. */
  readonly asked: (stage: IdentityStage, personId: string) => Effect.Effect<Asked, SqlError.SqlError, Fixture>
  /** The status of a valid request. */
  readonly status: number
}
