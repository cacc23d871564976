// Defines the name that a request gives for its sender, which is logged and stored.
import { nameText } from '../definition/texts.ts'

/** The schema of a `by`. */
export const requesterName = nameText(100)
