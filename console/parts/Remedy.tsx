/** What helps, in the program's words; a command among them stands on its own, to be copied. */
import type { JSX } from "preact"
import { CopyButton } from "./Copy.tsx"

/** Text of the program begins as a line of a command does, behind its subject; on a page it is a sentence. A name keeps its own letters. */
export const sentence = (text: string): string =>
  /^[a-z]+(?=[ ,:]|$)/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text

/** Commands that a remedy names, between quotes. */
const commands = /"((?:npx|bailiwick) [^"]+)"/

export const Remedy = ({ of }: { readonly of: string }): JSX.Element => (
  <div class="note">
    {sentence(of).split(commands).map((part, n) =>
      n % 2 === 0 ? part : (
        <span key={n}>
          <code>{part}</code> <CopyButton text={part} label="Copy command" />
        </span>
      )
    )}
  </div>
)
