/**
 * How many connections fit below the limit of file descriptors. Deno and Node raise the soft limit to the hard one when
 * they start, so the limit is read from the running process.
 */
import { readFileSync } from "node:fs"
import process from "node:process"

/** The usual limit of POSIX systems, where it cannot be read. */
const usual = 1_024

/**
 * Descriptors for other uses: 512 deliveries in flight and as many pooled connections to receivers, 24 connections to
 * PostgreSQL, the broker, SMTP, actors, files, and the listener's queue, which Deno's node:http accepts before the
 * program can refuse.
 */
const others = 1_536

/** As many as nginx in `deploy/` has; each live stream takes up to 60 KB of memory. */
const most = 16_384

/** The file descriptors that this process may have. */
export const descriptorLimit = (): number => {
  try {
    const [, soft] = /^Max open files\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? []
    return soft === "unlimited" ? Infinity : Number(soft ?? usual)
  } catch {
    const { userLimits } = (process.report?.getReport() ?? {}) as {
      readonly userLimits?: { readonly open_files?: { readonly soft?: number | "unlimited" } }
    }
    const soft = userLimits?.open_files?.soft ?? usual
    return soft === "unlimited" ? Infinity : soft
  }
}

/** Connections that a process with this limit takes at a time: a small limit is halved. */
export const connectionsBelow = (limit: number): number =>
  Math.max(1, Math.min(most, Math.max(Math.floor(limit / 2), limit - others)))
