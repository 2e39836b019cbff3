/**
 * Follows a project's lifecycle by cursor for as long as it is let (see SyncLoop.ts for what it holds to).
 *
 * Killed at any step it goes on from what was committed: what came after the last commit comes again.
 */
import { course, type CourseOptions, pause } from "./SyncLoop.ts"

export type { Applied, Notice } from "./SyncLoop.ts"

export type FollowOptions<Tx> = CourseOptions<Tx>

const waitSeconds = 25

/** Resolves when the signal is aborted; rejects for nothing but a wrong option. */
export const follow = async <Tx>(options: FollowOptions<Tx>): Promise<void> => {
  const { signal } = options
  const { failed, succeeded, turn } = course(options)
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
