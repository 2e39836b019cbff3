/** Connections that use up file descriptors, a listener that breaks, and the last requests of a stop. */
import { connectionCases } from "./support/ConnectionCases.ts"

connectionCases("false")
