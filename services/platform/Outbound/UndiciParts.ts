/**
 * The two parts of undici that are used here. undici's index also loads fetch, WebSocket, caches and mocks: 85 more
 * files, which cost 6 MB of memory and 50 ms of CPU at a start.
 */
import { createRequire } from "node:module"
import type * as Undici from "undici"

const load = createRequire(import.meta.url)

export const Agent: typeof Undici.Agent = load("undici/lib/dispatcher/agent.js")
export const buildConnector: typeof Undici.buildConnector = load("undici/lib/core/connect.js")
