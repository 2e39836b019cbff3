/**
 * The table of screens: one line each. `path` with `:parameters`, `menu` for a line in the navigation, `sees` for who
 * sees it, `load` for its file. The first line with `home` that a visitor sees is the page that they land on.
 */
import type { ComponentType } from "preact"
import { anyone, type Sees } from "./Visitor.ts"

export type Params = Readonly<Record<string, string>>

export interface Screen {
  readonly path: string
  readonly sees: Sees
  readonly load: () => Promise<{ readonly default: ComponentType<{ readonly params: Params }> }>
  /** The heading in the navigation under which the screen stands. */
  readonly part: Part
  /** Its words in the navigation; a screen without is reached from another one. */
  readonly menu?: string
  readonly home?: true
}

export const parts = ["Operations", "Decisions", "Mail", "You"] as const
export type Part = (typeof parts)[number]

export const screens: ReadonlyArray<Screen> = [
  // Operations
  // Decisions
  // Mail
  // You
  {
    part: "You",
    menu: "Sign-in",
    path: "/console/welcome",
    sees: anyone,
    home: true,
    load: () => import("./screens/Welcome.tsx"),
  },
]
