// How long a drill's own broker waits for a reply, in ms: that the machine is busy is no result of a drill.
export const PATIENT_MS = 30_000
