/**
 * Days that an audit record is kept at least. Four eyes look back ninety days at who made and approved whom, products may
 * ask for ninety days of history, and sign-ins that are older are known from the audit alone.
 */
export const leastAuditDays = 90
