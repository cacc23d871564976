// The schemas of a path in an input, and of an MD5 in an output.
import { z } from 'zod'

/** Linux's PATH_MAX is 4,096 bytes including the final NUL, and a character takes at least one byte. */
const MAX_PATH_LENGTH = 4_095

export const absolutePath = z
  .string()
  .max(MAX_PATH_LENGTH)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is the one character that no path may contain.
  .regex(/^\/[^\u0000]*$/, 'expected an absolute path without NUL characters')
  // Encoding a lone surrogate as UTF-8 replaces it, so that another file would be read.
  .refine((path) => path.isWellFormed(), 'expected well-formed Unicode')

export const md5 = z.string().regex(/^[0-9a-f]{32}$/)
