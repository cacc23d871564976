// Loads Bull Board, whose packages are optional peers.
import { readdir, readFile } from 'node:fs/promises'

export interface BullBoard {
  readonly createBullBoard: typeof import('@bull-board/api').createBullBoard
  readonly BullMQAdapter: typeof import('@bull-board/api/bullMQAdapter').BullMQAdapter
  readonly FastifyAdapter: typeof import('@bull-board/fastify').FastifyAdapter
  /** The texts of its pages in each language, by the path from which the pages load them. */
  readonly texts: ReadonlyMap<string, unknown>
}

/** The version is pinned, because the board is adapted by overriding methods of its queue adapter and by replacing routes. */
export const BULL_BOARD_PACKAGES = ['@bull-board/api', '@bull-board/fastify', '@bull-board/ui'] as const
export const BULL_BOARD_VERSION = '9.10.1'

const LANGUAGES = 'static/locales'

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
    return { createBullBoard, BullMQAdapter, FastifyAdapter, texts: await readTexts(new URL('dist/', pages)) }
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

async function readTexts(pages: URL): Promise<ReadonlyMap<string, unknown>> {
  const languages = await readdir(new URL(LANGUAGES, pages))
  const read = languages.map(async (language): Promise<[string, unknown]> => {
    const path = `${LANGUAGES}/${language}/messages.json`
    return [path, JSON.parse(await readFile(new URL(path, pages), 'utf8'))]
  })
  return new Map(await Promise.all(read))
}
