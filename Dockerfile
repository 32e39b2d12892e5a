# The core of Holdfast. UNTESTED: no container engine was available where this was written.
#   docker build --tag holdfast .
#   docker run --rm --volume "$PWD:/work" holdfast run patterns --algorithm finetune,replay --seeds 3
FROM python:3.11-slim

RUN useradd --create-home holdfast
COPY . /source
RUN pip install --no-cache-dir --constraint /source/constraints.txt /source && rm -rf /source

USER holdfast
WORKDIR /work
ENV HOLDFAST_CACHE=/home/holdfast/cache
ENTRYPOINT ["holdfast"]
CMD ["--help"]
