/** The command that prints in a shell what a page shows. */
import type { JSX } from "preact"
import { CopyButton } from "./Copy.tsx"
import { quoted } from "./Quoted.ts"

/** `command`: what follows `cli`; `options`: its options by name, those that are undefined left out. */
export const CopyCommand = ({ command, options = {}, what = "In a shell" }: {
  readonly command: string
  /** The words before it. */
  readonly what?: string
  readonly options?: Readonly<Record<string, string | undefined>>
}): JSX.Element => {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const whole = [
    `npx -y deno@2.9.6 task cli ${command}`,
    ...given.map(([name, value]) => `--${name} ${quoted(value!)}`),
  ]
    .join(" ")
  return (
    <p class="note">
      {what}: <code>{whole}</code> <CopyButton text={whole} label="Copy command" />
    </p>
  )
}
