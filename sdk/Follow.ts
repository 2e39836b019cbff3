/**
 * Follows a project's lifecycle by cursor until its signal is aborted; SyncLoop.ts has the guarantees.
 *
 * Killed at any step, it continues from the last commit: it fetches the later events again.
 */
import { pause, syncLoop, type SyncOptions } from "./SyncLoop.ts"

export type { Applied, Notice } from "./SyncLoop.ts"

export type FollowOptions<Tx> = SyncOptions<Tx>

const waitSeconds = 25

/** Resolves when the signal is aborted; rejects only for an invalid option. */
export const follow = async <Tx>(options: FollowOptions<Tx>): Promise<void> => {
  const { signal } = options
  const { failed, succeeded, turn } = syncLoop(options)
  while (!signal.aborted) {
    try {
      await turn(waitSeconds)
      succeeded()
    } catch (error) {
      if (signal.aborted) return
      await pause(await failed(error), signal)
    }
  }
}
