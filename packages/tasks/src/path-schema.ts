// A path as a caller may send it: absolute, and one that the file system can hold.
import { z } from 'zod'

/** Linux's PATH_MAX counts bytes and the final NUL; no allowed path has more characters than that. */
const LONGEST = 4_095

export const absolutePath = z
  .string()
  .max(LONGEST)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is the one character that no path can hold.
  .regex(/^\/[^\u0000]*$/, 'an absolute path without NUL characters')
  // A lone surrogate would be replaced on the way to UTF-8, and another file read.
  .refine((path) => path.isWellFormed(), 'well-formed Unicode')

export const md5 = z.string().regex(/^[0-9a-f]{32}$/)
