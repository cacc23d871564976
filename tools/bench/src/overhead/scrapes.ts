// Scrapes the metrics of processes once a second, as a Prometheus would that scrapes more often than usual.

const EVERY_MS = 1_000

export interface Scrapes {
  /** From now on, also scrapes this address, in place of the one that was named by an earlier call. */
  follow(url: string): void
  /** Resolves when the last scrape has been answered. */
  stop(): Promise<void>
}

/** Begins to scrape these addresses. A process that has ended is no longer scraped. */
export function startScrapes(urls: readonly string[]): Scrapes {
  let followed: string | undefined
  let scraping: Promise<unknown> = Promise.resolve()
  const scrape = async (url: string): Promise<void> => {
    const response = await fetch(url)
    await response.text()
  }
  const timer = setInterval(() => {
    const fixed = urls.map(scrape)
    const last = followed === undefined ? [] : [scrape(followed).catch(() => {})]
    scraping = Promise.all([...fixed, ...last])
  }, EVERY_MS)
  return {
    follow(url) {
      followed = url
    },
    async stop() {
      clearInterval(timer)
      await scraping
    },
  }
}
