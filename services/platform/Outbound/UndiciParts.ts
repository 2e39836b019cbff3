/**
 * The two parts of undici that are used here. Its index loads fetch, WebSocket, caches and mocks as well: 85 files more, with
 * which a process takes 6 MB and a start 50 ms of a core.
 */
import { createRequire } from "node:module"
import type * as Undici from "undici"

const load = createRequire(import.meta.url)

export const Agent: typeof Undici.Agent = load("undici/lib/dispatcher/agent.js")
export const buildConnector: typeof Undici.buildConnector = load("undici/lib/core/connect.js")
