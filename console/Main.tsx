/** The entry of the console. */
import { render } from "preact"
import { followLinks } from "./Location.ts"
import { Shell } from "./Shell.tsx"
import { followRefusals } from "./StepUp.tsx"
import { followSession } from "./Visitor.ts"

followLinks()
followRefusals()
followSession()
render(<Shell />, document.body)
