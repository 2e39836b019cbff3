/** The command that prints in a shell what a page shows. */
import type { JSX } from "preact"
import { CopyButton } from "./Copy.tsx"

/** `command`: what follows `cli`. */
export const CopyCommand = ({ command }: { readonly command: string }): JSX.Element => {
  const whole = `npx -y deno@2.9.6 task cli ${command}`
  return (
    <p class="note">
      In a shell: <code>{whole}</code> <CopyButton text={whole} label="Copy command" />
    </p>
  )
}
