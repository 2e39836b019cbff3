/**
 * The two parts of undici that are used here. undici's index also loads fetch, WebSocket, caches and mocks: 85 more
 * files, which cost 6 MB of memory and 50 ms of CPU at a start.
 */
import type * as Undici from "undici"
// @ts-ignore: undici has types for its index only
import connect from "undici/lib/core/connect.js"
// @ts-ignore: as above
import agent from "undici/lib/dispatcher/agent.js"

// tsc knows nothing of these files, and Deno what it reads from their JavaScript: neither is undici's own declaration.
export const Agent = agent as unknown as typeof Undici.Agent
export const buildConnector = connect as unknown as typeof Undici.buildConnector
