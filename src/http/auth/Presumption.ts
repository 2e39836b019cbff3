/** The caller of a request whose command is yet to recognise them; null where they are recognised. */
import { Context } from "effect"
import type { Presumed } from "../../../services/people/Callers.ts"

export class Presumption
  extends Context.Reference<Presumed | null>("bailiwick/http/auth/Presumption", { defaultValue: () => null }) {}
