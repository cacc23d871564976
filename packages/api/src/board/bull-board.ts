// Loads Bull Board, whose packages are optional peers.
import { readFile } from 'node:fs/promises'

export interface BullBoard {
  readonly createBullBoard: typeof import('@bull-board/api').createBullBoard
  readonly BullMQAdapter: typeof import('@bull-board/api/bullMQAdapter').BullMQAdapter
  readonly FastifyAdapter: typeof import('@bull-board/fastify').FastifyAdapter
  /** The English texts of its pages, by their keys. */
  readonly texts: unknown
}

/** The version is pinned, because the board is adapted by overriding methods of its queue adapter and by replacing routes. */
export const BULL_BOARD_PACKAGES = ['@bull-board/api', '@bull-board/fastify', '@bull-board/ui'] as const
export const BULL_BOARD_VERSION = '9.10.1'

/** The path of the English texts, relative to the directory of the pages. */
export const TEXTS_PATH = 'static/locales/en-US/messages.json'

/** Returns Bull Board, or undefined if one of its packages is not installed. */
export async function loadBullBoard(): Promise<BullBoard | undefined> {
  try {
    const [{ createBullBoard }, { BullMQAdapter }, { FastifyAdapter }] = await Promise.all([
      import('@bull-board/api'),
      import('@bull-board/api/bullMQAdapter'),
      import('@bull-board/fastify'),
    ])
    // createBullBoard() reads its pages from this package.
    const pages = import.meta.resolve('@bull-board/ui/package.json')
    const texts: unknown = JSON.parse(await readFile(new URL(`dist/${TEXTS_PATH}`, pages), 'utf8'))
    return { createBullBoard, BullMQAdapter, FastifyAdapter, texts }
  } catch (error) {
    if (isMissingPeer(error)) return undefined
    throw error
  }
}

/**
 * Returns whether one of the packages is missing. If any other module is missing, the installation is broken, and the error
 * must be reported.
 */
function isMissingPeer(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ERR_MODULE_NOT_FOUND' && BULL_BOARD_PACKAGES.some((name) => message.includes(`'${name}`))
}
