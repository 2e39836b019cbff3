/** What the visitor did and tried: the audit of one person. */
import { OwnAudit } from "./Audit.tsx"

export default OwnAudit
