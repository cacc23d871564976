// The schemas for a path in an input and an MD5 in an output.
import { z } from 'zod'

/** Linux's PATH_MAX is 4,096 bytes including the final NUL, and a character takes at least one byte. */
const MAX_PATH_LENGTH = 4_095

export const absolutePath = z
  .string()
  .max(MAX_PATH_LENGTH)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is the only character that a path cannot contain.
  .regex(/^\/[^\u0000]*$/, 'expected an absolute path without NUL characters')
  // Encoding a lone surrogate as UTF-8 would replace it, and a different file would be read.
  .refine((path) => path.isWellFormed(), 'expected well-formed Unicode')

export const md5 = z.string().regex(/^[0-9a-f]{32}$/)

/** A directory, and the names directly below it that are left out. */
export const fileTree = z.object({
  directory: absolutePath,
  exclude: z.array(z.string().max(MAX_PATH_LENGTH)).max(100).default([]),
})
